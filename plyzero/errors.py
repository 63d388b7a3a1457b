"""The one error that a command shows as a sentence instead of a traceback."""


class UserError(Exception):
    """Bad input. The message says what was expected, what came, where, and what to do."""
