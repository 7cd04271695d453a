import os
from pathlib import Path
from typing import Annotated

import typer

from contend.cli.commands import options

app = typer.Typer(help="Measure whether a debate helps, on which questions, and at what cost.")
app.callback(invoke_without_command=True)(options.show_help)

_Data = Annotated[
    list[str] | None,
    typer.Option(
        "--data",
        metavar="NAME[=PATH]",
        help="Built-in data set `questions` or `open`, a .jsonl file, or gsm8k=PATH, "
        "strategyqa=PATH, bbh=PATH, aqua=PATH, mmlu=PATH, forecastbench=PATH (repeatable).",
    ),
]
_Limit = Annotated[
    int | None,
    typer.Option("--limit", metavar="N", min=1, help="Use at most N items from each data set."),
]
_Seed = Annotated[
    int,
    typer.Option(metavar="S", help="Random seed for choosing items when --limit is given."),
]
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
            help="Ways to answer (arms), comma-separated: single, self_consistency, panel_vote, "
            f"self_refine, {', '.join(options.PROTOCOLS)}, gated (debate only if the models' "
            "initial answers differ); or `all` for every arm.",
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
        int,
        typer.Option(metavar="N", min=1, max=64, help="Number of samples for self_consistency."),
    ] = 5,
    equal_tokens: Annotated[
        bool,
        typer.Option(
            "--equal-tokens",
            help="For each item, limit every arm to the tokens that the first protocol in --arms "
            "consumed.",
        ),
    ] = False,
    judge: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER:NAME", help="Model that grades answers to open questions."),
    ] = None,
    langsmith: Annotated[
        bool,
        typer.Option(
            "--langsmith", help="Also upload the items and results to LangSmith (needs an API key)."
        ),
    ] = False,
    parallel: Annotated[
        int, typer.Option(metavar="N", min=1, max=32, help="Number of items to answer in parallel.")
    ] = 4,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Folder to save the run in."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not show progress.")] = False,
) -> int:
    """Answer every item in several ways, and write a report.

    Run the same command again to continue an interrupted run: you never pay twice for a finished
    call.
    """
    with options.loading_note(is_hidden=quiet):
        from contend.cli.actions.evals import run_eval, split_arms
        from contend.debates.settings_sources import parse_options, setting_variables
        from contend.evals.run import EvalOptions

    chosen = EvalOptions(
        arms=split_arms(arms),
        data=tuple(data or ["questions"]),
        model=model,
        flags=parse_options("refine", assignments or [], seat or [], []),
        config=config,
        variables=setting_variables(os.environ),
        limit=limit,
        seed=seed,
        samples=samples,
        equal_tokens=equal_tokens,
        judge=judge,
    )
    return run_eval(chosen, out, parallel, langsmith=langsmith, quiet=quiet)


@app.command("push")
def push(data: _Data = None, limit: _Limit = None, seed: _Seed = 0) -> None:
    """Create or update data sets in LangSmith.

    Pushing unchanged data again has no effect.
    """
    from contend.cli.actions.evals import push_data  # slow to import

    push_data(tuple(data or ["questions"]), limit, seed)


@app.command("report")
def report(folder: _Folder = None, json: options.Json = False) -> None:
    """Regenerate and print a run's report.

    Rewrites report.md and report.html in the run's folder.
    """
    from contend.cli.actions.evals import print_report  # slow to import

    print_report(folder, as_json=json)


@app.command("compare")
def compare(
    before: Annotated[Path, typer.Argument(metavar="A", help="Folder of the earlier run.")],
    after: Annotated[Path, typer.Argument(metavar="B", help="Folder of the later run.")],
    json: options.Json = False,
) -> int:
    """Compare two runs on the items they share.

    Exits with code 1 if an arm (a way of answering) got worse: its accuracy dropped, and the 95%
    confidence interval of the change lies entirely below zero.
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
            help="mmlu_pro=PATH (a CSV file with one column of answers per model) or "
            "forecastbench=PATH (a CSV file); repeatable.",
        ),
    ],
    models: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Columns of the mmlu_pro file to use as the panel, comma-separated.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Score recorded answers: each model alone, by majority vote, and pooled.

    For `--data mmlu_pro=PATH`, compares a majority vote of all models with a cheaper method, the
    gate, which asks two models first and the others only if those two disagree. For
    `--data forecastbench=PATH`, compares single and pooled forecasts. Makes no model calls.
    """
    from contend.cli.actions.evals import print_recorded  # slow to import

    print_recorded(data, models, as_json=json)


@app.command("judge")
def judge(
    model: Annotated[
        str, typer.Argument(metavar="PROVIDER:NAME", help="The model to test as a judge.")
    ],
    data: Annotated[
        str | None,
        typer.Option(
            metavar="llmbar=PATH",
            help="An LLMBar file, or a folder of them (default: built-in pairs with planted "
            "flaws).",
        ),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(
            metavar="PROVIDER:NAME",
            help="Also have the judge choose between its own answers and this model's.",
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="Judge at most N pairs.")
    ] = None,
    parallel: Annotated[
        int, typer.Option(metavar="N", min=1, max=32, help="Number of pairs to judge in parallel.")
    ] = 4,
    json: options.Json = False,
) -> int:
    """Measure how reliable a judge is.

    Measures accuracy, order bias, and the judge's preference for its own answers. Every
    pair of answers is judged in both orders. Run the same command again to continue an interrupted
    run.
    """
    from contend.cli.actions.eval_judge import check_judge  # slow to import

    return check_judge(model, data, other, limit, parallel, as_json=json)


@app.command("signals")
def signals(json: options.Json = False) -> int:
    """Measure how well Contend parses models' replies.

    Parses the verdicts, concessions, critiques and ratings in typical replies. Makes no model
    calls.
    """
    from contend.cli.actions.evals import print_signals  # slow to import

    return print_signals(as_json=json)
