"""The games that plyzero installs: rules only, one file per game.

connect_four  Connect Four
othello       Othello on 8x8 or 6x6
tic_tac_toe   tic-tac-toe
"""
