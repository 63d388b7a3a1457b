"""`python -m plyzero` is the command."""

from plyzero.cli import main

main()
