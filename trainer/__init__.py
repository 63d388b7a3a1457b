"""The trainer: learns from the replay store and publishes models. In the core only this package imports torch.

loop           the loop of the trainer: ingest, train or wait, publish
intake         what was read of the run: games, which enter the window and earn credit to train
learner        network, moving average and optimiser: a step on each batch
publisher      saves the state, then exports, compares and publishes a model
reporter       the heartbeat, rows of metrics, and lines in the log
replay_reader  new segments: each is read once, in its writer's order
window         the newest positions in memory, and the batches that are sampled from them
targets        training targets of recorded positions
network        the residual network
loss           the loss function
parts          network, targets and loss by their names in the settings, tried before training begins
ledger         the replay ratio, as an account of positions
state          the checkpoint from which a trainer resumes
first_model    a run that begins with the model of another bot
export         from torch to ONNX, and the 8-bit form of a model
retention      what is removed from the volume
diagnosis      does it learn? measures, and warnings with their likely causes
"""
