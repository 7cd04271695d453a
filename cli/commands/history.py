"""Options of `contend history` and `contend tree`."""

from contend.cli.commands.options import DebateId, Json


def history(debate: DebateId, json: Json = False) -> None:
    """List the steps of a debate, from its checkpoints."""
    from contend.cli.actions.history import print_history  # slow to import

    print_history(debate, as_json=json)


def tree(debate: DebateId, json: Json = False) -> None:
    """Show a debate with everything that was forked from it."""
    from contend.cli.actions.history import print_tree  # slow to import

    print_tree(debate, as_json=json)
