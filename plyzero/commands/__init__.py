"""The command line.

cli            the commands by panel of the help, and the exit codes
common         arguments that several commands share
train          train, init
roles          selfplay, trainer, evaluator, ray up
imitate        imitate
experiment     experiment run, ls, task, argo, snakefile
builtin_tasks  the built-in tasks of experiments, and the checks before they start
play           play, analyze, gtp, serve
terminal       the interface of `play` in the terminal
arena          match, ladder
pictures       render, plot
games          new, check
inspect        games, status, report, health, replay
machine        doctor, bench

A command imports what it needs inside its body, so that `--help` is fast. Only these modules of plyzero import
`selfplay` and `trainer`.
"""
