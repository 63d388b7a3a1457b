"""What is a game?

game            Game, the class that a user subclasses; outcomes and their codes
compiled_game   CompiledGame: rules as functions that Numba compiles
machine_code    machine code on disk: what has been compiled once on a machine is not compiled again
compile_errors  errors of Numba, reduced to the line of the user's file and what to do
chance          rolls: the possible ones of a position, and how they are sampled
counter_rng     random numbers computed from a seed and a counter
symmetry        symmetries of a game, as permutations of the observation and of the actions
board           the board that people see: cells, their names and pieces; as text and as a target of clicks
board_svg       boards as SVG pictures
catalog         games found by name: `othello(size=6)`, `my_module:MyGame`
declarations    checks of a game when it is loaded: its declarations, its first position
user_modules    modules of a user, imported from the current directory
user_errors     errors in a user's code: which frames are theirs, and what a message says
notation        moves as names, and positions as the moves or the board that lead to them
random_game     games of random moves
trial           what random games show: binary observations, symmetries
"""
