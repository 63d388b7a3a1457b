"""What is running?

supervisor  `plyzero train`: workers and a trainer on this machine, and what is reported of them
processes   signals, child processes, usable cores
status      a snapshot of a run: who does what, who waits for whom
health      whether this container's process makes progress
doctor      whether a machine and a volume meet the requirements
verify      whether every file of a run is sound
"""
