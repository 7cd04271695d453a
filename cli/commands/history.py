from contend.cli.commands.options import DebateId, Json


def history(debate: DebateId, json: Json = False) -> None:
    """List the checkpointed steps of a debate."""
    from contend.cli.actions.history import print_history  # slow to import

    print_history(debate, as_json=json)
