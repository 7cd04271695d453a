from contend.cli.commands.options import Json


def stats(json: Json = False) -> None:
    """Summarize all debates: ratings, scores, and whether debating changed the initial answers."""
    from contend.cli.actions.stats import print_stats  # slow to import

    print_stats(as_json=json)
