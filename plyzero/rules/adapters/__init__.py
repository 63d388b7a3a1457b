"""Games of other toolkits.

alpha_zero_general  games that were written for it as `azg:othello.OthelloGame:OthelloGame(n=6)`
openspiel           games of OpenSpiel as `openspiel:hex(board_size=7)`
openspiel_views     OpenSpiel's tensors and actions, turned to the player to move
"""
