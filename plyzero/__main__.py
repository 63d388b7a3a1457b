"""`python -m plyzero` is the command."""

from plyzero.commands.cli import main

main()
