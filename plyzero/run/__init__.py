"""What is on the volume?

directory      a run directory: create it, open it, its subdirectories
run_id         the id of a run, which its files carry; run.toml of earlier versions is brought up to date
configuration  where settings come from: defaults < preset < run.toml < environment < -o
presets        default settings for a machine and a game
records        the records of finished games
journals       finished games that are not sealed yet, one file per worker
adoption       the journals of dead workers are sealed by the trainer
segments       sealed games: immutable files in Zarr format
replay         recorded games as arrays, of a run or of a segment
zarr_zip       arrays in one zip file that zarr can open
recorded_game  a game as its records describe it, without its rules
games_json     recorded games as JSON
game_import    games from JSON lines as records, checked by the rules
models         published ONNX models: names, order, digests
changes        events of the system when a directory changes
metrics        JSON lines and heartbeats
event_files    scalars for TensorBoard
lease          one trainer per run
liveness       which processes are alive
troubles       files that cannot be used at the moment
"""
