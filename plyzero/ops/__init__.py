"""What is running?

supervisor  `plyzero train`: workers and a trainer on this machine, and reports of their progress
processes   signals, child processes, usable cores
status      a snapshot of a run: its files, its processes, and which process waits for what
accounts    games read, not read yet and removed; missing segments
health      whether this container's process makes progress
doctor      whether a machine and a volume meet the requirements
verify      whether every file of a run is valid
"""
