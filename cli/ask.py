"""`contend ask` and `contend resume`: their options. What they do is in cli.debating."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Pause = Literal["never", "each_round", "before_synthesis"]

Protocol = Annotated[str, typer.Option("--protocol", "-p", help="How the models debate.")]
Model = Annotated[
    str | None,
    typer.Option("--model", "-m", metavar="SPEC", help="Model of every seat not set by name."),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="A setting; may be repeated."),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="A YAML file of settings.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on stdout.")]
_Events = Annotated[bool, typer.Option("--events", help="One JSON event per line on stdout.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the result, no progress.")]
_Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")]


def ask(  # noqa: PLR0913, PLR0917 - one parameter per option
    question: Annotated[
        str, typer.Argument(metavar="QUESTION", help="The question, or - to read it from stdin.")
    ],
    protocol: Protocol = "adversarial",
    model: Model = None,
    assignments: Assignments = None,
    config: Config = None,
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
    from cli.consoles import Output  # --help must not wait for it
    from cli.debating import Request, ask_question

    wanted = list(assignments or []) + ([f"pause={pause}"] if pause else [])
    request = Request(question, protocol, model, wanted, config)
    return ask_question(request, Output(json, events, quiet))


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
    from cli.consoles import Output  # --help must not wait for it
    from cli.debating import resume_debate

    return resume_debate(debate, say, Output(json, events, quiet), finish=finish)


def _refuse_both(json: bool, events: bool) -> None:
    if json and events:
        from graph.errors import BadInput  # --help must not wait for it

        raise BadInput("--json and --events both write to stdout; choose one of them.")
