"""Kit engines: GTP, UCI, lines of text and JSON lines, other programs as players, files and films of games. Extra plot.

commands        gtp, uci, text, analyze
engine          GTP: a command in, a response out
uci             UCI: commands in, lines out, also during a search
text_engine     lines of text: moves in, moves out
analysis        JSON lines: positions in, results of searches out
programs        other programs as players: gtp:COMMAND, uci:COMMAND, text:COMMAND
spelled_game    a game whose moves a controller enters word by word
points          the points of a board, of which moves are made
plane_cells     the cells of a board on which the planes of an observation lie
game_files      the games of a file, whose form it recognises: JSON lines, SGF, PGN
sgf_games       games of SGF files, and the names that games and moves have there
sgf_collection  the syntax of SGF
pgn_games       games of PGN files
game_export     a game as a PGN or SGF file, with variations and comments
game_record     a recorded game, read from a file and replayed, and its frames
film            films and pictures of a recorded game
graphics        results of a search, as lines of info and as graphics of GoGui
"""
