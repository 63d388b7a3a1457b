"""What is on the volume?

directory      a run directory: create it, open it, its subdirectories, its id, which its files carry
configuration  where settings come from: defaults < preset < run.toml < environment < -o
records        the records of finished games
journals       finished games that are not sealed yet, one file per worker
adoption       the journals of dead workers are sealed by the trainer
segments       sealed games: immutable files in Zarr format
zarr_zip       arrays in one zip file that zarr can open
before         a run that goes on from another one, with its settings, its games and its last model as an opponent
replay         recorded games as arrays, with the rules or without them
json_games     games as JSON: export, and import that the rules check
models         published ONNX models: names, order, digests
metrics        what processes write about themselves: JSON lines, heartbeats, scalars for TensorBoard
events         the same as it is read: heartbeats, lines of the trainer and of workers, scores, as typed records
view           a run as its files show it: its processes, which are alive, what the trainer has published
budget         when the training is over
lease          one trainer per run
"""
