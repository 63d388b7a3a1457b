"""Is a game right?

laws         the laws that hold at every position of a game
sample_laws  the laws that take many positions to test
violations   the search for a broken law and the fewest moves that show it, with Hypothesis; GameLaws for pytest
survey       statistics of random games, and what they suggest
new_project  `plyzero new`: a project for a new game, from template/
"""
