"""Other programs as players: gtp:COMMAND, uci:COMMAND and text:COMMAND.

program_player  a program as a player, whose failures lose games
protocols       what such a program is sent, and what its answers mean
program         a program in a process of its own, with limits
"""
