"""The command line.

cli            the commands by panel of the help, and the exit codes
common         arguments that several commands share
train          train, init, selfplay, trainer
log_formats    what the processes of a run log, as text or JSON
ray_up         ray up
imitate        imitate
experiment     experiment run, ls, task, argo, snakefile
builtin_tasks  the built-in tasks of experiments, and what is checked before they start
task_progress  what `experiment run` shows
play           play, analyze, match
ladder         ladder
terminal       the interface of `play` in the terminal
serve          serve
gtp            gtp
render         render
plot           plot
games          new, check
inspect        games, status, health, replay
doctor         doctor
bench          bench

A command imports what it needs inside its body, so that `--help` is fast. Only these modules of plyzero import
`selfplay` and `trainer`.
"""
