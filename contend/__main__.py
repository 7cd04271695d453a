"""`python -m contend` is the `contend` command."""

from contend.cli.main import main

main()
