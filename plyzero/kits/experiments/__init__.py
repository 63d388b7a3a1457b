"""Kit experiments: many runs compared. Extras experiments, argo.

An experiment is a list of tasks in a TOML file: commands that exchange only files.

commands       experiment run, ls, task, argo, snakefile
builtin_tasks  the checks of built-in tasks before they start
definition     the content of a TOML file: parameters, runs, tasks
plan           the tasks of an experiment as a directed acyclic graph
runner         the local engine: starts tasks when they can, repeats and stops them
manifest       the directory of an experiment: its manifest, its lock, and the record of each task
argo           the same tasks as an Argo WorkflowTemplate
snakefile      the same tasks as a Snakefile
tasks          the built-in tasks: plyzero experiment task NAME
"""
