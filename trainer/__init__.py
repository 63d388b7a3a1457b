"""The trainer: learns from the replay store and publishes models. Only this package imports torch.

loop           the loop of the trainer: ingest, train or wait, publish
learner        network, moving average and optimiser: a step on each batch
replay_reader  new segments: each is read once, in its writer's order
window         the newest positions in memory, from which batches are sampled
targets        training targets of recorded positions
network        the residual network
loss           the loss function
parts          network, targets and loss by their names in the settings, tried before training begins
ledger         the replay ratio, as an account of positions
state          the checkpoint from which a trainer resumes
export         from torch to ONNX, and the 8-bit form of a model
retention      what is removed from the volume
diagnosis      does it learn? measures, and warnings with their likely causes
"""
