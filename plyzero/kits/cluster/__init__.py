"""Kit cluster: one process evaluates for many, several GPUs train together, a run is in a bucket or on Ray.

Extras grpc, s3, ray.

commands           evaluator, ray
bucket             a run in an S3-compatible object store
data_parallel      several processes, each with a GPU, make every step together
ray_cluster        `plyzero ray up`: workers and a trainer on a Ray cluster
keeper             starts a process again whenever it has ended: an actor of Ray
wire               the messages of the Open Inference Protocol, and the tensors in them
batcher            positions of many calls become batches of one network
mailboxes          the server's shared memory for workers of its own machine
evaluation_server  `plyzero evaluator`: the server
local_evaluator    the client of mailboxes
remote_network     the client: an evaluator that asks a server
model_repository   `plyzero evaluator --repository`: the newest model of a run where NVIDIA Triton looks for it
"""
