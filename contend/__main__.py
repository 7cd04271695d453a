"""Makes `python -m contend` run the `contend` command."""

from contend.cli.main import main

main()
