"""Does it learn? What the trainer measures of its models and games, and what it warns of.

diagnostics  what is measured of every model and of the newest games
guard        warnings about a run that is not learning, and their likely causes
consistency  do recorded positions that look the same follow the same rules?
perspective  does the observation show the side of the player to move?
"""
