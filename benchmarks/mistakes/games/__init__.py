"""Small games in plain Python, correct and written as a user would write them. Mistakes are planted in them.

onitama      cards that change their owner
walls        walls that must leave both players a way
two_moves    four in a row with two stones a turn
dice_points  a die that says where a stone may be put, and points
"""
