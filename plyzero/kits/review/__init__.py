"""Kit review: what each turn of a game has lost, how sure that is, and what the rolls gave. No extra.

reviewing    the review of a game: turns, luck, and searching on where a loss is not clear
by_tree      judging turns of a game without dice by the tree of each position, from the end backwards
by_ends      judging turns of a game with dice by the positions in which they end
verdicts     the verdict on a turn, and the unit of the judgement
turns        the turns of a game, and the rolls between them
values       values of positions, by searches
scale        what counts as a mistake in a game, accuracy, and the uncertainty of a loss
measuring    how the scale of a game is measured, and where it is kept
description  a review in words and as JSON
tables       reviews as text, of one game and of many
"""
