"""Small games in plain Python, correct and written as a user would write them. Mistakes are planted in them.

onitama      cards that change their owner
two_moves    four in a row with two stones a turn
"""
