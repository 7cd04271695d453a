"""`contend ask` and `contend resume`: their options. What they do is in cli.debating."""

from pathlib import Path
from typing import Annotated, Literal

import click
import typer

Pause = Literal["never", "each_round", "before_synthesis"]

# As in SETTINGS, which --help must not wait for; a test holds them alike.
PROTOCOLS = ("adversarial", "forum", "refine", "forecast", "moderated")
Protocol = Annotated[
    str,
    typer.Option(
        "--protocol",
        "-p",
        metavar="NAME",
        help=f"How the models debate: {', '.join(PROTOCOLS[:-1])} or {PROTOCOLS[-1]}.",
    ),
]
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="SPEC", help="Model of every seat not set by name."),
]
Seats = Annotated[
    list[str] | None,
    typer.Option("--seat", metavar="NAME=MODEL", help="A seat of equals; repeat it for each."),
]
Positions = Annotated[
    list[str] | None,
    typer.Option(
        "--position", metavar="NAME: POSITION", help="A side of moderated; repeat it for each."
    ),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="A setting; may be repeated."),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="A YAML file of settings.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
_Docs = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATH", help="A document or folder to argue from and quote; may be repeated."
    ),
]
_Images = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="A picture for the speakers of round 1; may be repeated."),
]
_NoTemplates = Annotated[
    bool, typer.Option("--no-templates", help="Argue without reasoning templates.")
]
_Outcomes = Annotated[
    list[str] | None,
    typer.Option(metavar="ID: LABEL", help="Forecast: an outcome; repeat it for each."),
]
_RequestFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Forecast: a whole request as JSON.")
]
_Due = Annotated[
    str | None,
    typer.Option(
        metavar="DAY", help="Forecast: when it is known, as 2027-05-01; else the request's end."
    ),
]
_Yes = Annotated[bool, typer.Option("--yes", help="Forecast: take the outcomes a model proposes.")]
_Events = Annotated[bool, typer.Option("--events", help="One JSON event per line on stdout.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the result, no progress.")]
_Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")]


def ask(  # noqa: PLR0913, PLR0917 - one parameter per option
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="QUESTION", show_default=False, help="The question, or - to read it from stdin."
        ),
    ] = None,
    protocol: Protocol = "adversarial",
    model: Model = None,
    seat: Seats = None,
    position: Positions = None,
    assignments: Assignments = None,
    config: Config = None,
    docs: _Docs = None,
    image: _Images = None,
    no_templates: _NoTemplates = False,
    outcome: _Outcomes = None,
    request: _RequestFile = None,
    due: _Due = None,
    yes: _Yes = False,
    pause: Annotated[
        Pause | None, typer.Option(help="Where to wait for you; the default is never.")
    ] = None,
    json: Json = False,
    events: _Events = False,
    quiet: _Quiet = False,
    _debug: _Debug = False,
) -> int:
    """Debate a question and print the answer.

    A model is PROVIDER:NAME, such as ollama:qwen3:32b, openai:gpt-5-mini,
    openrouter:VENDOR/MODEL or embedded:smollm2-135m. Hosted models cost money:
    the price of a debate is shown at its end, and `unknown` where no price is set.
    """
    _refuse_both(json, events)
    if question is None and request is None:
        raise click.MissingParameter(param_hint="'QUESTION'", param_type="argument")
    from contend.cli.actions.ask import Files, Request, Sides, ask_question
    from contend.cli.actions.forecast_request import ForecastOptions
    from contend.cli.view.console import Output  # --help must not wait for it

    wanted = list(assignments or []) + ([f"pause={pause}"] if pause else [])
    wanted += ["templates=false"] if no_templates else []
    files = Files(_paths("--docs", docs), _paths("--image", image))
    sides = Sides(seat or [], position or [])
    forecast = ForecastOptions(outcome or [], request, due, yes)
    asked = Request(question, protocol, model, sides, wanted, config, files, forecast)
    return ask_question(asked, Output(json, events, quiet))


def resume(
    debate: Annotated[str, typer.Argument(metavar="ID", help="The debate's id or its beginning.")],
    say: Annotated[str, typer.Option(metavar="TEXT", help="Words for the next speakers.")] = "",
    finish: Annotated[bool, typer.Option("--finish", help="End the rounds, write the answer.")] = (
        False
    ),
    json: Json = False,
    events: _Events = False,
    quiet: _Quiet = False,
    _debug: _Debug = False,
) -> int:
    """Go on with a debate that was paused, interrupted or failed."""
    _refuse_both(json, events)
    from contend.cli.actions.ask import resume_debate
    from contend.cli.view.console import Output  # --help must not wait for it

    return resume_debate(debate, say, Output(json, events, quiet), finish=finish)


def _paths(option: str, given: list[str] | None) -> list[Path]:
    """Paths as given; an empty one, as an unset variable gives, would mean the current folder."""
    if given and not all(path.strip() for path in given):
        from contend.graph.errors import BadInput  # --help must not wait for it

        raise BadInput(f"{option} was given an empty path.")
    return [Path(path).expanduser() for path in given or []]


def _refuse_both(json: bool, events: bool) -> None:
    if json and events:
        from contend.graph.errors import BadInput  # --help must not wait for it

        raise BadInput("--json and --events both write to stdout; choose one of them.")
