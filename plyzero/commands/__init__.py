"""The command line.

cli         the commands by panel of the help, and the exit codes
common      arguments that several commands share
train       train, init
of_kits     the commands of kits and of other packages
roles       selfplay, trainer, rate
play        play
terminal    the interface of `play` in the terminal
match       match
games       new, check
checking    the laws that check tests, and what it tells meanwhile
inspect     games, status, wait, health, replay
machine     doctor, bench
bottleneck  what limits a worker, and how this machine compares

A command imports what it needs inside its body, so that `--help` is fast. Only these modules of the core import
`plyzero.selfplay` and `plyzero.trainer`.
"""
