"""Options of `contend tree`."""

from contend.cli.commands.options import DebateId, Json


def tree(debate: DebateId, json: Json = False) -> None:
    """Show the family of a debate: which debates were forked from which."""
    from contend.cli.actions.tree import print_tree  # slow to import

    print_tree(debate, as_json=json)
