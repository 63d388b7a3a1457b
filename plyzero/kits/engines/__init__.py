"""The Go Text Protocol.

engine        a command in, a response out
spelled_game  a game whose moves a controller enters word by word
points        the points of a board, of which moves are made
graphics      what a search finds, as lines of info and as graphics of GoGui
"""
