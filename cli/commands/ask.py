from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click
import typer

from contend.cli.commands import options

if TYPE_CHECKING:
    from contend.cli.actions.ask import Request

Pause = Literal["never", "each_round", "before_synthesis"]

_Docs = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="Document or folder that the models can quote (repeatable)."),
]
_Images = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="Image to show to the models in round 1 (repeatable)."),
]
_NoTemplates = Annotated[
    bool, typer.Option("--no-templates", help="Do not give the models reasoning templates.")
]
_Outcomes = Annotated[
    list[str] | None,
    typer.Option(metavar="'ID: LABEL'", help="Forecast: a possible outcome (repeatable)."),
]
_RequestFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Forecast: read the question, outcomes and data from a JSON file."
    ),
]
_Due = Annotated[
    str | None,
    typer.Option(
        metavar="DATE", help="Forecast: the day the outcome will be known, such as 2027-05-01."
    ),
]
_Yes = Annotated[
    bool,
    typer.Option(
        "--yes",
        help="Forecast: if no --outcome is given, accept a model's suggested outcomes without "
        "confirmation.",
    ),
]
_Server = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Run the debate on this LangGraph server, with its models and keys. If the server "
        "has several addresses, separate them with commas.",
    ),
]
_DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Check everything and print the estimate, without starting."),
]
_Cassette = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Rerun a debate from a recording made with `export --format cassette`; no model is "
        "called.",
    ),
]
_Continue = Annotated[
    str | None,
    typer.Option(
        "--continue",
        metavar="ID",
        help="Start a new debate that continues the finished debate ID with one more round on "
        "QUESTION. The original stays unchanged.",
    ),
]
# Options that have no effect on a recording or a follow-up question.
_NEW_DEBATE_OPTIONS = (
    "config",
    "docs",
    "image",
    "outcome",
    "request",
    "due",
    "dry_run",
    "pause",
    "server",
)
_SEAT_OPTIONS = ("protocol", "preset", "seat", "position")
_Events = Annotated[bool, typer.Option("--events", help="Print one JSON event per line.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the answer.")]
_Debug = Annotated[bool, typer.Option("--debug", help="Show a full traceback on error.")]


def ask(  # noqa: PLR0913, PLR0917 - one parameter per option
    context: typer.Context,
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="QUESTION", show_default=False, help="The question, or - to read it from stdin."
        ),
    ] = None,
    protocol: options.Protocol = None,
    preset: options.Preset = None,
    model: options.Model = None,
    seat: options.Seats = None,
    position: options.Positions = None,
    assignments: options.Assignments = None,
    config: options.Config = None,
    budget: options.Budget = None,
    max_cost: options.MaxCost = None,
    docs: _Docs = None,
    image: _Images = None,
    no_templates: _NoTemplates = False,
    outcome: _Outcomes = None,
    request: _RequestFile = None,
    due: _Due = None,
    yes: _Yes = False,
    dry_run: _DryRun = False,
    server: _Server = None,
    cassette: _Cassette = None,
    follow_up: _Continue = None,
    pause: Annotated[
        Pause | None,
        typer.Option(
            help="When to pause for your comments: never, after each round, or before the final "
            "answer (default: never)."
        ),
    ] = None,
    json: options.Json = False,
    events: _Events = False,
    quiet: _Quiet = False,
    plain: options.Plain = False,
    _debug: _Debug = False,
) -> int:
    """Debate a question and print the answer.

    Write a model as PROVIDER:NAME, such as ollama:qwen3:32b, openai:gpt-5-mini,
    openrouter:VENDOR/MODEL or embedded:smollm2-135m. Hosted models cost money.
    An estimate is shown first and the actual cost at the end. If the price of any model is
    unknown, both are shown as `unknown`.
    """
    given = {**locals()}
    _refuse_both(json, events)
    if dry_run and events:
        raise click.UsageError("--dry-run has no events; use --json instead of --events.")
    if dry_run and server:
        raise click.UsageError("--dry-run checks this machine, not a --server.")
    if cassette:
        options.refuse_options(context, "--cassette", (*_NEW_DEBATE_OPTIONS, "preset", "follow_up"))
    if follow_up:
        options.refuse_options(context, "--continue", (*_NEW_DEBATE_OPTIONS, *_SEAT_OPTIONS))
    if question is None and request is None and cassette is None:
        raise click.MissingParameter(param_hint="'QUESTION'", param_type="argument")
    with options.loading_note(is_hidden=quiet or json or events):
        from contend.cli.actions.ask import ask_question
        from contend.cli.actions.cassette import play_cassette
        from contend.cli.actions.fork import ask_again
        from contend.cli.view.console import Output  # slow to import
        from contend.debates.cassettes import read_cassette

    recorded = read_cassette(cassette) if cassette else None
    if recorded and protocol is None:
        given["protocol"] = recorded.debate.protocol
    asked, output = read_request(given), Output(json, events, quiet, plain)
    if follow_up:
        return ask_again(follow_up, asked, output)
    return play_cassette(recorded, asked, output) if recorded else ask_question(asked, output)


def read_request(given: Mapping[str, Any]) -> "Request":
    from contend.cli.actions.ask import Request
    from contend.cli.actions.forecast_request import ForecastOptions
    from contend.debates.settings_sources import parse_options

    preset, pause = options.chosen_preset(given["preset"]), given["pause"]
    protocol = options.chosen_protocol(given["protocol"], preset)
    wanted = list(given["assignments"] or []) + ([f"pause={pause}"] if pause else [])
    wanted += ["templates=false"] if given["no_templates"] else []
    flags = parse_options(protocol, wanted, given["seat"] or [], given["position"] or [])
    forecast = [given[name] for name in ("request", "due", "yes")]
    return Request(
        question=given["question"],
        protocol=protocol,
        flags=flags | options.given_budget(given["budget"], given["max_cost"]),
        model=given["model"],
        config=given["config"],
        preset=preset,
        documents=_paths("--docs", given["docs"]),
        images=_paths("--image", given["image"]),
        forecast=ForecastOptions(given["outcome"] or [], *forecast),
        dry_run=given["dry_run"],
        server=given.get("server"),
    )


def resume(  # noqa: PLR0913, PLR0917 - one parameter per option
    debate: options.DebateId,
    say: Annotated[
        str, typer.Option(metavar="TEXT", help="Add a comment for the next speakers.")
    ] = "",
    finish: Annotated[
        bool,
        typer.Option("--finish", help="Finish the current round, then write the answer."),
    ] = False,
    budget: options.Budget = None,
    max_cost: options.MaxCost = None,
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="New address of the debate's server, if the address has changed."
        ),
    ] = None,
    json: options.Json = False,
    events: _Events = False,
    quiet: _Quiet = False,
    plain: options.Plain = False,
    _debug: _Debug = False,
) -> int:
    """Continue a paused, interrupted or failed debate."""
    _refuse_both(json, events)
    with options.loading_note(is_hidden=quiet or json or events):
        from contend.cli.actions.ask import resume_debate
        from contend.cli.view.console import Output  # slow to import
        from contend.graph.state import Remark

    remark, changes = Remark(say=say, finish=finish), options.given_budget(budget, max_cost)
    return resume_debate(debate, remark, changes, Output(json, events, quiet, plain), server)


def _paths(option: str, given: list[str] | None) -> list[Path]:
    """Convert arguments to paths; raise BadInput for an empty one."""
    if given and not all(path.strip() for path in given):
        from contend.graph.errors import BadInput  # slow to import

        raise BadInput(f"The path given to {option} is empty.")
    return [Path(path).expanduser() for path in given or []]


def _refuse_both(json: bool, events: bool) -> None:
    if json and events:
        from contend.graph.errors import BadInput  # slow to import

        raise BadInput("--json and --events both write to stdout; use only one of them.")
