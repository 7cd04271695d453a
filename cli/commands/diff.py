"""Options of `contend diff`."""

from contend.cli.commands.options import DebateId, Json


def diff(first: DebateId, second: DebateId, json: Json = False) -> None:
    """Show where two debates diverge, and how each ended."""
    from contend.cli.actions.diff import print_comparison  # slow to import

    print_comparison(first, second, as_json=json)
