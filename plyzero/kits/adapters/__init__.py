"""Kit adapters: games of other toolkits, and rules in a shared library. Extra openspiel.

sources             the toolkits whose games have names: `openspiel:` and `azg:`
native_game         NativeGame: rules as functions of a shared library, in C, C++ or Rust
alpha_zero_general  games that were written for it as `azg:othello.OthelloGame:OthelloGame(n=6)`
azg_boards          their boards as planes: every conversion of a board is here
azg_calls           calls of their methods, whose answers are checked
azg_trial           the trial of a game by random games
azg_symmetries      the symmetries that their getSymmetries shows
openspiel           games of OpenSpiel as `openspiel:hex(board_size=7)`
openspiel_views     OpenSpiel's tensors and actions, turned to the player to move
"""
