import difflib
import json
from typing import Any

from contend.debates.exports.wording import sentence

_LONGEST_OFFERED = 80
_LEAST_SIMILAR = 0.7

# Commands in other tools, and our equivalents; the first equivalent that exists is suggested.
_COMMANDS = {
    **dict.fromkeys(("debate", "run", "chat", "start", "new", "query", "discuss"), ("ask",)),
    **dict.fromkeys(("log", "logs", "ps", "ls", "search", "status"), ("list",)),
    **dict.fromkeys(("rm", "remove", "delete"), ("delete", "rm", "remove")),
    **dict.fromkeys(("continue", "reply", "retry", "unpause"), ("resume",)),
    **dict.fromkeys(("view", "cat", "print", "get"), ("show",)),
    **dict.fromkeys(("server", "web", "ui", "gui", "api", "dashboard"), ("serve",)),
    **dict.fromkeys(("install", "download", "fetch"), ("pull", "add")),
    **dict.fromkeys(("init", "setup", "login", "check"), ("doctor",)),
    **dict.fromkeys(("settings", "set"), ("config",)),
    "save": ("export",),
    "title": ("rename",),
}
# Options in other tools, and our equivalents; the first that the command has is suggested.
_OPTIONS = {
    **dict.fromkeys(("--file", "--files", "--document", "--attach", "-f"), ("--docs",)),
    **dict.fromkeys(("--agents", "--debaters", "--participants"), ("--seat",)),
    **dict.fromkeys(("--workers", "--jobs", "--concurrency", "--threads", "-j"), ("--parallel",)),
    **dict.fromkeys(("--output", "--output-dir", "--output-folder"), ("--out",)),
    "-v": ("--version", "--debug"),
    "--verbose": ("--debug",),
    **dict.fromkeys(("--force", "--assume-yes"), ("--yes",)),
    "--provider": ("--model",),
    **dict.fromkeys(("--max-tokens", "--token-limit"), ("--budget",)),
    **dict.fromkeys(("--cost", "--max-price"), ("--max-cost",)),
    "--filter": ("--search",),
}
_FILE = "Export the debate afterwards: contend export ID --format html --output FILE."
_ADVICE = {
    "--rounds": "Set the rounds with --set min_rounds=1 --set max_rounds=3.",
    "--max-rounds": "Set the rounds with --set max_rounds=3.",
    **dict.fromkeys(("--format", "--output", "-o", "--out", "--save"), _FILE),
    "--temperature": "Set it per role, such as --set judge_temperature=0.2; "
    "`contend config` lists all settings.",
    **dict.fromkeys(
        ("--api-key", "--key", "--token"),
        "Store a key with: contend keys set OPENAI_API_KEY",
    ),
    "--judge": "Choose the judge's model with --set judge_model=PROVIDER:NAME.",
    "--timeout": "Set it with --set total_timeout=600, in seconds.",
    **dict.fromkeys(("--language", "--lang"), "The models answer in the language of the question."),
    **dict.fromkeys(("--no-color", "--no-colour"), "Set the variable NO_COLOR=1 instead."),
    "--seed": "Replies cannot be seeded; leave it out.",
    "--stream": "Answers are always streamed; leave it out.",
}
_QUOTES = 'Put the question in quotes: contend ask "...".'
_PATHS = "Repeat --docs or --image for each path."
# Advice about arguments, by command.
_EXTRA = {
    "contend ask": _QUOTES,
    "contend list": "To find debates, use --search WORDS.",
    "contend export": "Name the file with --output.",
    "contend config": "It prints the settings; change one with --set NAME=VALUE or in a file "
    "given with --config.",
    "contend rename": "Put the title in quotes.",
}
_MISSING = {
    "'QUESTION'": _QUOTES,
    "'ID'": "`contend list` shows the ids.",
    "'TITLE'": "Put it in quotes after the id.",
    "'FILE'": "Name a file with the questions, such as questions.csv.",
    "'--out'": "Name a folder for the results: --out results.",
}


def explain_usage(error: Any, arguments: list[str], command: str) -> str:
    said = str(error.format_message())
    if hint := _offer_ask(said, arguments) or _offer_command(error, said):
        return hint
    if option := getattr(error, "option_name", ""):
        if said.startswith("No such option"):
            return f"No such option: {option}. {_offer_option(error, option)}".strip()
        return said
    return " ".join(filter(None, (sentence(said), _offer_argument(said, arguments, command))))


def _offer_ask(said: str, arguments: list[str]) -> str:
    """Suggest `contend ask` if the user typed a question without a command."""
    if not said.startswith("No such command"):
        return ""
    words = [each for each in arguments if not each.startswith("-")]
    asked = next((each for each in words if " " in each.strip()), "")
    meant = words[0] == asked or "ask" in _COMMANDS.get(words[0], ())
    if not asked or not meant:
        return ""
    shown = asked if len(asked) <= _LONGEST_OFFERED else "..."
    return f"To debate a question, use ask: contend ask {json.dumps(shown, ensure_ascii=False)}."


def _offer_command(error: Any, said: str) -> str:
    """Suggest our equivalent of another tool's command; return '' if there is none."""
    if not said.startswith("No such command"):
        return ""
    known = error.ctx.command.commands
    given = said.partition("'")[2].partition("'")[0]
    if given == "version":
        return "No such command 'version'. Use: contend --version."
    meant = next((each for each in _COMMANDS.get(given, ()) if each in known), "")
    return f"No such command '{given}'. Did you mean '{meant}'?" if meant else ""


def _offer_option(error: Any, given: str) -> str:
    known = [name for each in error.ctx.command.params for name in each.opts]
    if meant := next((each for each in _OPTIONS.get(given, ()) if each in known), ""):
        return f"Did you mean {meant}?"
    # All advice is about commands that run debates.
    if "--set" in known and (given in _ADVICE or _is_setting(given)):
        return _ADVICE.get(given) or f"Set it with --set {_setting(given)}=VALUE."
    near = difflib.get_close_matches(given, known, n=1, cutoff=_LEAST_SIMILAR)
    return f"Did you mean {near[0]}?" if near else ""


def _setting(option: str) -> str:
    return option.removeprefix("--").replace("-", "_")


def _is_setting(option: str) -> bool:
    from contend.graph.settings import SETTINGS  # slow to import

    return any(_setting(option) in each.model_fields for each in SETTINGS.values())


def _offer_argument(said: str, arguments: list[str], command: str) -> str:
    if "extra argument" in said:
        paths = any(option in arguments for option in ("--docs", "--image"))
        return _PATHS if paths else _EXTRA.get(command, "")
    missing = said.startswith("Missing")
    return next((hint for name, hint in _MISSING.items() if missing and name in said), "")
