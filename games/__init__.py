"""The games that plyzero installs: rules only, one file per game."""
