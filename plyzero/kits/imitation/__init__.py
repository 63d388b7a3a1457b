"""Kit imitation: a network that learns from recorded games, of people or of other programs.

learning   how recorded games become a model
commands   imitate
"""
