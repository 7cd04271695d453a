"""Options of `contend eval`; actions/evals.py does the work."""

from pathlib import Path
from typing import Annotated

import typer

from contend.cli.commands import options

app = typer.Typer(help="Measure whether a debate helps, on what, and at what cost.")
app.callback(invoke_without_command=True)(options.show_help)

_Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="NAME[=PATH]",
        help="Data set: questions, open, a file.jsonl, or gsm8k=PATH, strategyqa=PATH, bbh=PATH, "
        "aqua=PATH, mmlu=PATH, forecastbench=PATH (repeatable).",
    ),
]
_Limit = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=1, help="Items of each data set.")
]
_Seed = Annotated[int, typer.Option(metavar="S", help="Chooses which items a limit takes.")]
_Folder = Annotated[
    Path | None,
    typer.Argument(metavar="FOLDER", help="Folder of a run (default: the newest)."),
]


@app.command("run")
def run(  # noqa: PLR0913, PLR0917 - one parameter per option
    arms: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Ways to answer, with commas between them: single, self_consistency, panel_vote, "
            f"self_refine, {', '.join(options.PROTOCOLS)}, gated; or all.",
        ),
    ] = "single,self_consistency,refine",
    data: _Data = None,
    limit: _Limit = None,
    seed: _Seed = 0,
    model: options.Model = None,
    seat: options.Seats = None,
    assignments: options.Assignments = None,
    config: options.Config = None,
    samples: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="Samples of self_consistency.")
    ] = 5,
    equal_tokens: Annotated[
        bool,
        typer.Option(
            "--equal-tokens",
            help="Let every arm use as many tokens per item as the first protocol in --arms.",
        ),
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER:NAME", help="Model that marks answers to open questions."),
    ] = None,
    langsmith: Annotated[
        bool,
        typer.Option(
            "--langsmith", help="Also upload the items and results to LangSmith (needs its key)."
        ),
    ] = False,
    parallel: Annotated[
        int, typer.Option(metavar="N", min=1, max=32, help="Items to answer at the same time.")
    ] = 4,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Where to keep the run."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> int:
    """Answer every item in several ways, and write a report.

    Run the same command again to continue a stopped run: no finished call is paid twice.
    """
    with options.loading_note(is_hidden=quiet):
        from contend.cli.actions.evals import run_eval, split_arms
        from contend.debates.settings_sources import parse_options
        from contend.evals.run import EvalOptions

    chosen = EvalOptions(
        arms=split_arms(arms),
        data=tuple(data or ["questions"]),
        model=model,
        flags=parse_options("refine", assignments or [], seat or [], []),
        config=config,
        limit=limit,
        seed=seed,
        samples=samples,
        equal_tokens=equal_tokens,
        judge=judge,
    )
    return run_eval(chosen, out, parallel, langsmith=langsmith, quiet=quiet)


@app.command("push")
def push(data: _Data = None, limit: _Limit = None, seed: _Seed = 0) -> None:
    """Create or update data sets in LangSmith; a second push changes nothing."""
    from contend.cli.actions.evals import push_data  # slow to import

    push_data(tuple(data or ["questions"]), limit, seed)


@app.command("report")
def report(folder: _Folder = None, json: options.Json = False) -> None:
    """Write the report of a run again, as report.md and report.html, and print it."""
    from contend.cli.actions.evals import print_report  # slow to import

    print_report(folder, as_json=json)


@app.command("compare")
def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="Folder of the earlier run.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="Folder of the later run.")],
    json: options.Json = False,
) -> int:
    """Compare two runs on the items they share; exit code 1 if an arm got worse.

    An arm got worse if its accuracy dropped and the 95 % interval of the change is below zero.
    """
    from contend.cli.actions.evals import compare_runs  # slow to import

    return compare_runs(before, after, as_json=json)


@app.command("recorded")
def recorded(
    data: Annotated[
        list[str],
        typer.Option(
            "--data",
            metavar="NAME=PATH",
            help="mmlu_pro=CSV with a column of answers per model, or forecastbench=CSV "
            "(repeatable).",
        ),
    ],
    models: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Columns of mmlu_pro that form the panel, with commas between them.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Measure votes, gates and pools on recorded answers of real models, without any call."""
    from contend.cli.actions.evals import print_recorded  # slow to import

    print_recorded(data, models, as_json=json)


@app.command("judge")
def judge(
    model: Annotated[
        str, typer.Argument(metavar="PROVIDER:NAME", help="The model to measure as a judge.")
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="llmbar=PATH",
            help="A file or folder of LLMBar (default: our pairs with planted flaws).",
        ),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(
            metavar="PROVIDER:NAME",
            help="Also let it choose between its own answers and those of this model.",
        ),
    ] = None,
    limit: _Limit = None,
    parallel: Annotated[
        int, typer.Option(metavar="N", min=1, max=32, help="Pairs to judge at the same time.")
    ] = 4,
    json: options.Json = False,
) -> int:
    """Measure a judge before you trust it: accuracy, order, and preference for its own answers.

    Every pair is judged in both orders. Run the same command again to continue a stopped one.
    """
    from contend.cli.actions.eval_judge import check_judge  # slow to import

    return check_judge(model, data, other, limit, parallel, as_json=json)


@app.command("signals")
def signals(json: options.Json = False) -> int:
    """Read 40 replies as models write them, and compare what is read with what they mean."""
    from contend.cli.actions.evals import print_signals  # slow to import

    return print_signals(as_json=json)
