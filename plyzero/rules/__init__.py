"""What is a game?

game           Game, the class that a person subclasses; outcomes and their codes
compiled_game  CompiledGame: the same rules as functions that Numba compiles
symmetry       permutations of observation and actions under which the rules stay the same
text_board     a board of squares as text
catalog        find a game by name: `othello(size=6)`, `my_module:MyGame`
notation       actions and their names
random_game    games of random moves
"""
