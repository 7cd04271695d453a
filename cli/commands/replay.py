from typing import Annotated

import typer

from contend.cli.commands import options


def replay(  # noqa: PLR0913, PLR0917 - one parameter per option
    context: typer.Context,
    debate: options.DebateId,
    speed: Annotated[
        float,
        typer.Option(
            metavar="N",
            min=0.01,
            help="Playback speed: 1 is the original speed.",
        ),
    ] = 1.0,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Rerun the debate with the recorded model replies; exit with code 5 if anything "
            "differs.",
        ),
    ] = False,
    reuse_until: Annotated[
        str | None,
        typer.Option(
            metavar="ROUND[:PHASE]",
            help="Rerun as a new debate: use the recorded replies up to this point, then call "
            "models.",
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="With --strict or --reuse-until: print JSON.")
    ] = False,
    events: Annotated[
        bool, typer.Option("--events", help="Print one JSON event per line.")
    ] = False,
    plain: options.Plain = False,
) -> int:
    """Play a debate back, or rerun it from its recorded replies.

    No model is called, except with --reuse-until.
    """
    from contend.cli.actions.replay import check_path, play, replay_until  # slow to import

    if reuse_until is not None:
        options.refuse_options(context, "--reuse-until", ("strict", "speed"))
        return replay_until(debate, reuse_until, as_json=json, as_events=events, is_raw=plain)
    if strict:
        return check_path(debate, as_json=json)
    return play(debate, speed, as_events=events or json, is_raw=plain)
