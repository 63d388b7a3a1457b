"""The command line, by panel of the help.

cli       the commands and their panels, exit codes
common    arguments that several commands share
train     train, init, selfplay, trainer
play      play, analyze, match
terminal  the game in a terminal
games     new, check, games
inspect   status, health, replay
doctor    doctor
bench     bench

A command imports what it needs inside its body, so that `--help` is fast; these are the only imports of `selfplay` and
`trainer` in the whole of plyzero.
"""
