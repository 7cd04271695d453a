from contend.cli.commands.options import DebateId, Json


def tree(debate: DebateId, json: Json = False) -> None:
    """Show the tree of a debate's ancestors and forks."""
    from contend.cli.actions.tree import print_tree  # slow to import

    print_tree(debate, as_json=json)
