"""Games of other toolkits.

openspiel        games of OpenSpiel as `openspiel:hex(board_size=7)`
openspiel_views  OpenSpiel's tensors and actions, turned to the player to move
"""
