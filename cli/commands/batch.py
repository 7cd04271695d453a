from pathlib import Path
from typing import Annotated

import typer

from contend.cli.commands import options


def batch(  # noqa: PLR0913, PLR0917 - one parameter per option
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="Questions: .csv with a `question` column, .jsonl, or .txt."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where to write the results.")
    ],
    protocol: options.Protocol = None,
    preset: options.Preset = None,
    model: options.Model = None,
    seat: options.Seats = None,
    position: options.Positions = None,
    assignments: options.Assignments = None,
    config: options.Config = None,
    budget: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Maximum tokens for each debate.")
    ] = None,
    max_cost: Annotated[
        str | None,
        typer.Option(metavar="DOLLARS", help="Maximum cost of each debate in US dollars."),
    ] = None,
    parallel: Annotated[
        int, typer.Option(metavar="N", min=1, max=32, help="Number of debates to run in parallel.")
    ] = 4,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not show progress.")] = False,
) -> int:
    """Debate every question in a file, and write one row of results per question.

    A CSV file needs a `question` column. Forecasts also need an `outcomes` column and may have a
    `due` column. A column with the name of a setting, such as `max_rounds`, sets it row by row.
    Run the same command again to continue an interrupted batch.
    """
    with options.loading_note(is_hidden=quiet):
        from contend.cli.actions.batch import run_batch
        from contend.debates.batch import BatchOptions
        from contend.debates.settings_sources import parse_options

    found = options.chosen_preset(preset)
    chosen = options.chosen_protocol(protocol, found)
    flags = parse_options(chosen, assignments or [], seat or [], position or [])
    flags |= options.given_budget(budget, max_cost)
    wanted = BatchOptions(chosen, flags, model, config, found)
    return run_batch(file, out, wanted, parallel, quiet=quiet)
