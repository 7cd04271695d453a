"""Seats with their own files and tools, from the command line over HTTP."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.actions.test_ask_bad_input import _assert_refused
from tests.cli.support import QUESTION, Command, debaters
from tests.nodes.calls.test_evidence import PIXEL
from tests.support.model_server import ModelServer, Reply, Request

MINUTES = "The owners voted in May that dogs are tolerated in the garden."
SUM = ("calculate", {"expression": "1200 * 12"})
SEARCH = ("search_documents", {"query": "what did the owners vote"})


@pytest.fixture
def models() -> Any:
    with ModelServer(using_tools, models=["m", "other"]) as running:
        yield running


@pytest.fixture(autouse=True)
def here(contend: Command, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder of the command, with files for the seats."""
    folder = contend.home.parent
    monkeypatch.chdir(folder)
    (folder / "minutes.txt").write_text(MINUTES)
    (folder / "chart.png").write_bytes(PIXEL)
    return folder


def using_tools(request: Request) -> Reply:
    """Call every available tool, then answer with the results."""
    if request.tools and not request.results:
        offered = [call for call in (SUM, SEARCH) if call[0] in request.tools]
        return Reply("Let me check.", tool_calls=offered)
    reply: Reply = debaters()(request)
    if request.results:
        return Reply(f'{reply.text} I got 14400, and "{MINUTES}" [minutes:1].')
    return reply


def table(provider: str = "openai", **ann: Any) -> dict[str, Any]:
    """Return settings in which Ann has more than a model."""
    seats = [
        {"name": "Ann", "model": f"{provider}:m", **ann},
        {"name": "Ben", "model": f"{provider}:other"},
    ]
    quick = {"max_debate_rounds": 1, "retry_wait": 0.01, "embedding_model": "openai:m"}
    return {"seats": seats, "judge_model": f"{provider}:m", **quick}


def ask(settings: dict[str, Any], *arguments: str) -> list[str]:
    Path("table.yaml").write_text(yaml.safe_dump(settings))
    return ["ask", QUESTION, "-p", "refine", "--config", "table.yaml", *arguments]


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_tools_in_the_settings_file_are_called_and_recorded(
    provider: str, contend: Command, models: ModelServer
) -> None:
    models.tool_users = {"m"}
    settings = table(provider, docs=["minutes.txt"], tools=["calculate", "search_documents"])
    ended = contend(*ask(settings, "--json"))
    assert ended.code == 0, ended.err
    record = ended.json
    ann, ben = [turn for turn in record["turns"] if turn["round"] == 0]
    found = f"[minutes:1]\n{MINUTES}"
    assert ann["tool_calls"] == [
        {"name": "calculate", "arguments": SUM[1], "result": "14400", "failed": False},
        {"name": "search_documents", "arguments": SEARCH[1], "result": found, "failed": False},
    ]
    assert ben["tool_calls"] == []
    assert ann["text"].startswith("Let me check.\n\nThis is answer 0 of m.")
    assert [quote["status"] for quote in ann["quotes"]] == ["found"]
    assert record["documents"][0]["seats"] == ["ann"]
    assert record["degraded"] == []
    # What the model was sent: tools only to Ann, and their results as fenced data.
    calls = [call.request for call in models.calls]
    assert {request.model for request in calls if request.tools} == {"m"}
    answered = next(request for request in calls if request.results)
    assert ">\n14400\n</result " in answered.results[0]
    assert f">\n[minutes:1]\n{MINUTES}\n</document " in answered.results[1]
    debating = [r for r in calls if r.instructions.startswith("You are one of several debaters")]
    told = {r.model for r in debating if f"[minutes:1]\n{MINUTES}" in r.user}
    assert told == {"m"}
    (judge, *_) = [r for r in calls if r.instructions.startswith("You are the judge")]
    assert f"[minutes:1]\n{MINUTES}" in judge.user


def test_tool_calls_appear_on_the_terminal_in_show_and_in_the_export(contend: Command) -> None:
    settings = table(docs=["minutes.txt"], tools=["calculate", "search_documents"])
    ended = contend(*ask(settings, "--set", "enable_debate=false"))
    assert ended.code == 0, ended.err
    debate = contend.here("list", "--json").json[0]["id"]
    for screen in (ended.out, contend.here("show", debate).out):
        assert "Documents: minutes.txt [minutes] (for Ann)" in screen
        assert "  ⚒ calculate(expression: 1200 * 12) → 14400\n" in screen
        (line,) = [line for line in screen.splitlines() if "⚒ search_documents" in line]
        assert "search_documents(query: what did the owners vote) → [minutes:1] The" in line
    document = contend.here("export", debate).out
    assert "- Documents: minutes.txt [minutes] (for Ann)" in document
    assert (
        "*A tool was used:*\n\n```text\ncalculate(expression: 1200 * 12)\n\n14400\n```" in document
    )
    assert f"[minutes:1]\n{MINUTES}\n```" in document


def test_a_tool_that_failed_is_shown_as_such(contend: Command, models: ModelServer) -> None:
    def script(request: Request) -> Reply:
        if request.tools and not request.results:
            return Reply(tool_calls=[("calculate", {"expression": "1 / 0"}), ("calculate", "6 *")])
        reply: Reply = debaters()(request)
        return reply

    models.script = script
    ended = contend(*ask(table(tools=["calculate"]), "--set", "enable_debate=false"))
    assert ended.code == 0
    assert "  ⚒ calculate(expression: 1 / 0) ✗ Not calculated: division by zero.\n" in ended.out
    assert "  ⚒ calculate() ✗ These arguments are no JSON object: 6 *\n" in ended.out
    debate = contend.here("list", "--json").json[0]["id"]
    assert "*A tool failed:*" in contend.here("export", debate).out


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_the_text_streams_token_by_token_with_tools(
    provider: str, contend: Command, models: ModelServer
) -> None:
    def slowly(request: Request) -> Reply:
        reply = using_tools(request)
        return Reply(reply.text, tool_calls=reply.tool_calls, chunk_delay=0.04)

    models.script, models.tool_users = slowly, {"m"}
    settings = table(provider, tools=["calculate"])
    lines = contend.here(*ask(settings, "--set", "enable_debate=false", "--events")).out
    events = [json.loads(line) for line in lines.splitlines()]
    chunks = [
        event["content"]
        for event in events
        if event["event"] == "seat_chunk" and event["metadata"]["seat"] == "ann"
    ]
    (whole,) = [
        event["content"]
        for event in events
        if event["event"] == "seat_complete" and event["metadata"]["seat"] == "ann"
    ]
    assert "".join(chunks) == whole
    assert len(chunks) > 5


def test_image_of_one_seat_is_sent_only_to_that_seat(contend: Command, models: ModelServer) -> None:
    models.vision = {"m"}
    settings = table("ollama", images=["chart.png"])
    ended = contend.here(*ask(settings, "--json", "-q"))
    assert ended.code == 0
    assert ended.json["images"][0]["seats"] == ["ann"]
    seeing = [c.request.model for c in models.calls if "iVBORw" in str(c.request.body)]
    assert seeing == ["m"]


def test_debate_resumes_after_its_files_were_deleted(
    contend: Command, models: ModelServer, here: Path
) -> None:
    settings = table(docs=["minutes.txt"], images=["chart.png"], tools=["search_documents"])
    paused = contend.here(*ask(settings, "--pause", "each_round", "--json", "-q"))
    assert paused.code == 3
    (here / "minutes.txt").unlink()
    (here / "chart.png").unlink()
    ended = contend.here("resume", paused.json["id"], "--json", "-q")
    assert ended.code == 3
    (ann,) = [t for t in ended.json["turns"] if t["round"] == 1 and t["seat"] == "ann"]
    assert ann["tool_calls"][0]["result"] == f"[minutes:1]\n{MINUTES}"


def test_seat_settings_accept_camel_case_and_home_paths(contend: Command, here: Path) -> None:
    settings = table(tools=["calculate"], docs=["~/minutes.txt"], systemPrompt="Be brief.")
    ended = contend.here(*ask(settings | {"maxToolCalls": 1}, "--json", "-q"), HOME=str(here))
    assert ended.code == 0
    assert ended.json["settings"]["max_tool_calls"] == 1


def test_config_prints_seat_files_and_tools(contend: Command) -> None:
    own: dict[str, Any] = {"docs": ["minutes.txt"], "images": ["chart.png"], "tools": ["calculate"]}
    Path("table.yaml").write_text(yaml.safe_dump(table(**own)))
    printed = contend.here("config", "-p", "refine", "--config", "table.yaml", "--json").json
    (ann, ben) = printed["settings"]["seats"]["value"]
    assert {key: ann[key] for key in own} == own
    assert {key: ben[key] for key in own} == {"docs": [], "images": [], "tools": []}
    assert printed["settings"]["max_tool_calls"] == {"value": 5, "source": "default"}


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "unknown tool": (
        {"tools": ["calculate", "shell"]},
        "seat 1: tools 'shell' does not exist; known: calculate, search_documents (",
    ),
    "no list of tools": ({"tools": "calculate"}, "seat 1: tools must be a list ("),
    "odd tool": ({"tools": [7]}, "seat 1: tools '7' does not exist; known:"),
    "no list of docs": ({"docs": "minutes.txt"}, "seat 1: docs must be a list ("),
    "odd path": ({"images": [7]}, "seat 1: images must be text ("),
    "empty path": ({"docs": [""]}, "seat 1: docs has an empty path ("),
    "blank picture": ({"images": [" "]}, "seat 1: images has an empty path ("),
    "no such document": ({"docs": ["gone.txt"]}, "File not found: gone.txt"),
    "no such picture": ({"images": ["gone.png"]}, "Cannot read gone.png"),
    "no picture": ({"images": ["minutes.txt"]}, "minutes.txt is not a PNG, JPEG, GIF or WebP"),
    "nothing to search": (
        {"tools": ["search_documents"]},
        "Ann has the tool search_documents, but no documents to search. Add some with --docs",
    ),
    "misspelt": ({"tool": ["calculate"]}, "seat 1: tool is not a setting of a seat; known: name,"),
}


@pytest.mark.parametrize(("own", "said"), REFUSED.values(), ids=REFUSED)
def test_bad_seat_settings_are_refused_in_one_line(
    contend: Command, models: ModelServer, here: Path, own: dict[str, Any], said: str
) -> None:
    _assert_refused(contend, models, here, ask(table(**own)), said)


@pytest.mark.parametrize(
    ("model", "own", "said"),
    [
        ("ollama:m", {"tools": ["calculate"]}, "Ann's model ollama:m cannot use tools (calculate)"),
        (
            "ollama:m",
            {"images": ["chart.png"]},
            "Ann's model ollama:m does not accept images. Give it no",
        ),
        (
            "openai:gpt-4",
            {"images": ["chart.png"], "fallbacks": ["openai:m"]},
            "Ann's model openai:gpt-4 does not accept images.",
        ),
        (
            "openai:m",
            {"tools": ["calculate"], "fallbacks": ["ollama:other"]},
            "Ann's model ollama:other cannot use tools (calculate). Remove the tools of this seat",
        ),
    ],
)
def test_models_without_tool_or_image_support_are_refused_by_name(
    contend: Command,
    models: ModelServer,
    here: Path,
    model: str,
    own: dict[str, Any],
    said: str,
) -> None:
    models.models = ["m", "other", "gpt-4"]
    _assert_refused(contend, models, here, ask(table(model=model, **own)), said)


def test_invalid_tool_call_limits_are_refused(
    contend: Command, models: ModelServer, here: Path
) -> None:
    for value, said in (("0", "between 1 and 50, not 0"), ("many", "a whole number, not many")):
        asked = ask(table(), "--set", f"max_tool_calls={value}")
        _assert_refused(contend, models, here, asked, f"max_tool_calls must be {said}")
    asked = ["ask", QUESTION, "--set", "max_tool_calls=3", "-m", "openai:m"]
    _assert_refused(contend, models, here, asked, "max_tool_calls")
