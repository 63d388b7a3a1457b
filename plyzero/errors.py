"""The one error that a command shows as a sentence instead of a traceback."""


class UserError(Exception):
    """Bad input. The message says what was expected, what came, where, and what to do."""


class ModelRefusedError(Exception):
    """A model that cannot be used. The message says which one and why."""


def shown(value: object) -> str:
    """Return how a message quotes what came: whatever it is, in a few words."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of too many digits, or too deep
        return f"a {type(value).__name__} beyond all bounds"
    return text if len(text) <= 80 else f"{text[:77]}..."
