"""The names of all fault points of `plyzero.files`."""

FAULT_POINTS = (
    "write: half",
    "write: before sync",
    "write: before it appears",
    "write: before the directory is synced",
    "rename: before",
    "append: half",
    "append: before it is checked",
    "append: before sync",
    "remove: before",
    "move: before",
)
