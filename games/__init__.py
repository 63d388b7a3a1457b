"""The games that ship with plyzero: rules only, one file per game."""
