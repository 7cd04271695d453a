import gc
import os
import sys
import traceback
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from contend.cli.commands import (
    ask,
    config,
    doctor,
    evals,
    forecasts,
    keys,
    models,
    serve,
    templates,
)
from contend.cli.commands.batch import batch
from contend.cli.commands.delete import delete
from contend.cli.commands.demo import demo
from contend.cli.commands.diff import diff
from contend.cli.commands.estimate import estimate
from contend.cli.commands.export import export
from contend.cli.commands.fork import fork
from contend.cli.commands.history import history
from contend.cli.commands.list import list_debates
from contend.cli.commands.mcp import mcp
from contend.cli.commands.open import open_debate
from contend.cli.commands.options import show_help
from contend.cli.commands.prune import prune
from contend.cli.commands.rate import rate
from contend.cli.commands.rename import rename
from contend.cli.commands.replay import replay
from contend.cli.commands.show import show_debate
from contend.cli.commands.stats import stats
from contend.cli.commands.tree import tree
from contend.cli.ending import abandon_threads, exit_process
from contend.cli.exit_codes import BAD_INPUT, FAILED, OK
from contend.cli.late_imports import delay_imports

_EPILOG = (
    "Exit codes: 0 done, 1 error, 2 bad input or settings, 3 paused, 4 model failed, "
    "5 replay differs from the recording."
)

_GROUPS = {
    "Debates": ("ask", "resume", "batch", "estimate", "demo"),
    "Results": ("list", "show", "stats", "open", "rate", "rename", "export", "delete", "prune"),
    "Time travel": ("history", "replay", "fork", "tree", "diff"),
    "Forecasts": ("resolve", "due", "scoreboard", "schema"),
    "Evals": ("eval",),
    "Setup": ("doctor", "config", "presets", "keys", "models", "templates", "graph"),
    "Servers": ("serve", "mcp"),
}


class _GroupedCommands(TyperGroup):
    def format_commands(self, _: Any, formatter: Any) -> None:
        grouped = {name for names in _GROUPS.values() for name in names}
        others = tuple(name for name in self.commands if name not in grouped)
        for title, names in {**_GROUPS, "Other": others}.items():
            rows = [(name, self.commands[name].get_short_help_str(100)) for name in names]
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


# Plain help works in every terminal and is twice as fast.
app = typer.Typer(
    name="contend",
    cls=_GroupedCommands,
    help="Make language models debate a question and print the answer.",
    epilog=_EPILOG,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# Click truncates long help in the list of commands.
app.command("ask")(ask.ask)
app.command("resume")(ask.resume)
app.command("batch", short_help="Debate every question in a file.")(batch)
app.command("estimate", short_help="Estimate the calls, tokens and cost of a debate.")(estimate)
app.command("demo")(demo)
app.command("list")(list_debates)
app.command("show")(show_debate)
app.command("stats", short_help="Summarize the ratings and scores of all debates.")(stats)
app.command("open", short_help="Open a debate in the browser.")(open_debate)
app.command("rate")(rate)
app.command("rename", short_help="Give a debate a title.")(rename)
app.command("export", short_help="Export a debate, or training data from all debates.")(export)
app.command("delete", short_help="Delete one debate.")(delete)
app.command("prune", short_help="Delete old or damaged debates.")(prune)
app.command("history")(history)
app.command("replay")(replay)
app.command("fork", short_help="Start a new debate from a point in an existing one.")(fork)
app.command("tree")(tree)
app.command("diff")(diff)
app.command("resolve", short_help="Record which outcome of a forecast came true.")(
    forecasts.resolve
)
app.command("due", short_help="List unresolved forecasts past their due date.")(forecasts.due)
app.command("scoreboard", short_help="Show how accurate forecasts were.")(forecasts.scoreboard)
app.command("schema")(forecasts.schema)
app.command("serve", short_help="Serve the web page and the HTTP API.")(serve.serve)
app.command("mcp", short_help="Serve debates as MCP tools over stdin and stdout.")(mcp)
app.command("doctor")(doctor.doctor)
app.command("config")(config.config)
app.command("presets")(config.presets)
app.command("graph")(config.graph)
app.add_typer(evals.app, name="eval")
app.add_typer(keys.app, name="keys")
app.add_typer(models.app, name="models")
app.add_typer(templates.app, name="templates")


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"contend {version('contend')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def root(
    context: typer.Context,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    _debug: Annotated[
        bool, typer.Option("--debug", help="Show a full traceback on error.")
    ] = False,
) -> None:
    """Print the help if no command is given."""
    show_help(context)


def main() -> None:
    # Garbage collection during imports takes a tenth of the startup; see `garbage.py`.
    gc.disable()
    delay_imports()
    for stream in (sys.stdout, sys.stderr):
        # Print a question mark, not a traceback, where emoji cannot be encoded.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    code = run(sys.argv[1:])
    _flush()
    exit_process(code)


def run(arguments: list[str]) -> int:
    debug = "--debug" in arguments or os.environ.get("CONTEND_DEBUG", "") not in ("", "0")
    if not debug:
        warnings.simplefilter("ignore")
    try:
        _load_keys(arguments)
        code = app(arguments, prog_name="contend", standalone_mode=False)
    except BrokenPipeError:
        return FAILED
    except Exception as error:  # noqa: BLE001 - the last handler; a person must never see a traceback
        return _explain(error, arguments, debug=debug)
    if code == _INTERRUPTED:
        abandon_threads()
        return _refuse("Interrupted before anything started.", FAILED, debug=False)
    return code if isinstance(code, int) else OK


def _load_keys(arguments: list[str]) -> None:
    if not arguments or {"-h", "--help", "--version"} & {*arguments}:
        return
    from contend.cli.view.console import print_message  # slow to import
    from contend.models.keys import load_keys, redirected_by_dotenv

    notices = load_keys(Path())
    if (names := redirected_by_dotenv()) and not _QUIET & {*arguments}:
        notices.append(
            f".env sets variables that control where data is sent or stored: {', '.join(names)}."
        )
    for notice in notices:
        print_message(f"Note: {notice}", style="warning")


# With these options only errors and warnings are printed on stderr.
_QUIET = {"-q", "--quiet", "--json", "--events"}


# Typer returns this for Ctrl-C outside a running debate.
_INTERRUPTED = 130


def _explain(error: Exception, arguments: list[str], *, debug: bool) -> int:
    usage = getattr(error, "format_message", None)
    if usage is not None:
        from contend.cli.hints import explain_usage  # rarely needed

        command = _command(error, arguments)
        said = explain_usage(error, arguments, command)
        return _refuse(_usage_error(said, command), BAD_INPUT, debug=debug)
    from contend.graph.errors import BadInput, DamagedDebate  # slow to import
    from contend.models.failures import scrub

    if isinstance(error, BadInput):
        return _refuse(str(error), BAD_INPUT, debug=debug)
    if isinstance(error, DamagedDebate):
        return _refuse(str(error), FAILED, debug=debug)
    said = " ".join(f"{type(error).__name__}: {error}".split())
    again = "" if debug else " Run again with --debug for a traceback."
    return _refuse(scrub(f"{said}.{again}"), FAILED, debug=debug)


def _command(error: Exception, arguments: list[str]) -> str:
    known = {command.name for command in app.registered_commands}
    first = f" {arguments[0]}" if arguments and arguments[0] in known else ""
    return getattr(getattr(error, "ctx", None), "command_path", f"contend{first}")


_NO_INTEGER = "Input should be a valid integer, unable to parse string as an integer"


def _usage_error(said: str, command: str) -> str:
    from contend.debates.exports.wording import sentence

    said = said.replace("Value error, ", "").replace(_NO_INTEGER, "it must be a whole number")
    said = said.replace("Input should be", "it must be").replace("argument(s)", "arguments")
    return f"{sentence(said)} See `{command} --help`."


def _refuse(message: str, code: int, *, debug: bool) -> int:
    from contend.cli.view.console import print_message

    if debug:
        from contend.models.failures import scrub

        sys.stderr.write(scrub(traceback.format_exc()))
    print_message(f"Error: {message}", style="error")
    return code


def _flush() -> None:
    from contend.cli.view.console import silence

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            silence(stream)
