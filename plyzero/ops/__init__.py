"""What is running?

supervisor       `plyzero train`: workers and a trainer on this machine, and reports of their progress
local_processes  the processes that it starts: trainer, workers, evaluator; what ends them
training         `plyzero.train`, the same in one call from Python
child            a child process: it ends with this one, and has a log
processes        orderly stops of this process: signals, the death of its parent, hung code
rating           the newest model plays fixed opponents, beside the training or in a process of its own
failures         why a process failed, in one sentence, and whether the rules of the game are the cause
sizes            weights and memory that a run needs, known before anything starts
status           a snapshot of a run: its files, its processes, and which process waits for what
summary          a run in two lines: what it has reached, whether it learns, what it waits for, what is left
accounts         games read, not read yet and removed; missing segments
doctor           whether a machine and a volume meet the requirements
verify           whether every file of a run is valid; valid files are moved out of quarantine
"""
