"""Kit engines: GTP, UCI, lines of text and JSON lines, other programs as players, records and films. Extra plot.

commands      gtp, uci, text, analyze
analysis      the engine that answers JSON lines with search results
engine        GTP: a command in, a response out
uci           UCI: commands in, lines out, also during a search
text_engine   lines of text: moves in, moves out
programs      other programs as players: gtp:COMMAND, uci:COMMAND, text:COMMAND
protocols     what such a program is sent, and what its answers mean
program       a program in a process of its own, with limits
spelled_game  a game whose moves a controller enters word by word
points        the points of a board, of which moves are made
plane_cells   the cells of a board on which the planes of an observation lie
game_record   a recorded game, read from a file and replayed, and its frames
film          films and pictures of a recorded game
graphics      results of a search, as lines of info and as graphics of GoGui
"""
