"""The errors whose message is shown to the user without a traceback."""


class UserError(Exception):
    """Wrong input. The message says what was expected, what came, where, and what to do."""


class ModelRefusedError(Exception):
    """A model that cannot be used. The message says which one and why."""


def shown(value: object) -> str:
    """Return `value` as a message quotes it: its repr, cut to 80 characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # an integer with too many digits, or nesting that is too deep
        return f"a value of type {type(value).__name__} that is too large to show"
    return text if len(text) <= 80 else f"{text[:77]}..."
