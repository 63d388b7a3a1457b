"""How does one process evaluate for many? Needs the extra `grpc`.

wire               the messages of the Open Inference Protocol, and the tensors in them
batcher            positions of many calls become batches of one network
mailboxes          how the server answers workers of its own machine: shared memory
evaluation_server  `plyzero evaluator`: the server
local_evaluator    the client of mailboxes
remote_network     the client: an evaluator that asks a server
model_repository   `plyzero evaluator --repository`: the newest model of a run where NVIDIA Triton looks for it
"""
