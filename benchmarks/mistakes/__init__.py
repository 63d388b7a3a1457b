"""Mistakes that are planted in correct games, to measure what `plyzero check` finds.

games       small games in plain Python that mistakes are planted in
"""
