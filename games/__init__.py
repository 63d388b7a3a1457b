"""The games that plyzero installs: rules only, one file per game.

backgammon    Backgammon, one die at a time, without the doubling cube
breakthrough  Breakthrough on 4x4 to 10x10
chess         Chess, and Chess960
connect_four  Connect Four
go            Go on 2x2 to 19x19
gomoku        Gomoku on 5x5 to 19x19
hex           Hex on 3x3 to 19x19, with the swap rule
othello       Othello on 8x8 or 6x6
pig           Pig, a game with a die
tic_tac_toe   tic-tac-toe
"""
