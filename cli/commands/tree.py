from contend.cli.commands.options import DebateId, Json


def tree(debate: DebateId, json: Json = False) -> None:
    """Show a debate's forks, and the debates that it was forked from, as a tree."""
    from contend.cli.actions.tree import print_tree  # slow to import

    print_tree(debate, as_json=json)
