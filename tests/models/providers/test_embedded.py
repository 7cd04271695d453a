import asyncio
import os
import re
import signal
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from pydantic import BaseModel, Field

from contend.graph.errors import BadInput
from contend.models.providers import embedded
from contend.models.providers.registry import (
    Options,
    check_models,
    open_model,
    open_models,
    parse_spec,
)
from contend.models.providers.weights import KNOWN, SMALLEST, is_pulled, pull, weights_path

ROOT = Path(__file__).parents[3]
DEBATE = [
    ("system", "You are the Critic in a debate. Name the weaknesses of the argument."),
    ("user", "Should schools ban phones?\n\nThe Advocate said: Phones disturb every lesson."),
]


class Point(BaseModel):
    severity: Literal["critical", "major", "minor"]
    status: Literal["open", "partial", "resolved"]
    text: str = Field(max_length=120)


class Critique(BaseModel):
    ready: bool
    score: int = Field(ge=1, le=10)
    points: list[Point] = Field(max_length=4)


@pytest.fixture(scope="session")
def weights() -> Path:
    """The real weights, fetched once per checkout."""
    home = ROOT / ".cache" / "home"
    known = KNOWN[SMALLEST]
    return (
        weights_path(known, home) if is_pulled(known, home) else pull(known, home, lambda *_: None)
    )


@pytest.fixture(scope="module", autouse=True)
def _servers_end() -> Iterator[None]:
    yield
    embedded.close()


def _sentences(text: str) -> int:
    return len(re.findall(r"[.!?](?=\s|$)", text))


def _gguf(path: Path, context: int) -> Path:
    key, words = b"llama.context_length", (b"general.tags", b"a", b"b")
    array = struct.pack("<Q", len(words[0])) + words[0] + struct.pack("<IIQ", 9, 8, 2)
    array += b"".join(struct.pack("<Q", len(word)) + word for word in words[1:])
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<II", 4, context)
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + array + entry)
    return path


def test_finds_a_known_model_in_the_data_folder(tmp_path: Path) -> None:
    path = embedded.find_weights(SMALLEST, tmp_path)
    assert path == weights_path(KNOWN[SMALLEST], tmp_path)
    assert embedded.context_tokens(path) == 8192


def test_accepts_the_users_own_model_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _gguf(tmp_path / "own.gguf", 2048)
    monkeypatch.setenv("HOME", str(tmp_path))
    path = embedded.find_weights("~/own.gguf", tmp_path / "home")
    assert path == tmp_path / "own.gguf"
    assert embedded.context_tokens(path) == 2048


def test_the_window_of_a_large_model_is_bounded(tmp_path: Path) -> None:
    assert embedded.context_tokens(_gguf(tmp_path / "large.gguf", 131_072)) == 8192
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(b"GGUF\x03")
    assert embedded.context_tokens(damaged) == 8192


def _entry(value: bytes, name: bytes = b"a") -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + struct.pack("<Q", len(name)) + name + value


DAMAGED = {
    "entries": b"GGUF" + struct.pack("<IQQ", 3, 0, 2**64 - 1),
    "name": b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**64 - 1),
    "string": _entry(struct.pack("<IQ", 8, 2**60)),
    "strings": _entry(struct.pack("<IIQ", 9, 8, 2**62)),
    "numbers": _entry(struct.pack("<IIQ", 9, 10, 2**63)),
    "nested": _entry(struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5000),
    "kind": _entry(struct.pack("<I", 77)),
    "negative": _entry(struct.pack("<Ii", 5, -4), b"llama.context_length"),
    "cut": b"GGUF\x03",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
async def test_refuses_a_damaged_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged.gguf"
    path.write_bytes(content)
    assert embedded.context_tokens(path) == 8192
    with pytest.raises(BadInput, match=r"Cannot load the model file damaged\.gguf"):
        await check_models([f"embedded:{path}"])


def test_skips_arrays_in_the_gguf_header(tmp_path: Path) -> None:
    path = tmp_path / "own.gguf"
    array = struct.pack("<IIQ", 9, 4, 3) + b"\0" * 12
    key = b"llama.context_length"
    entry = struct.pack("<Q", len(key)) + key + struct.pack("<II", 4, 1024)
    path.write_bytes(_entry(array) + entry)
    assert embedded.context_tokens(path) == 1024


async def test_reports_missing_system_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(name: str) -> None:
        raise ImportError("libgomp.so.1: cannot open shared object file\nand more")

    path = _gguf(tmp_path / "own.gguf", 2048)
    monkeypatch.setattr("contend.models.providers.embedded.importlib.import_module", fail)
    with pytest.raises(BadInput, match="libgomp1 on Debian") as refused:
        await check_models([f"embedded:{path}"])
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["~nobody-of-this-name/a.gguf", "a\0.gguf"])
async def test_refuses_an_invalid_path(name: str) -> None:
    with pytest.raises(BadInput, match="Cannot read"):
        await check_models([f"embedded:{name}"])


@pytest.mark.parametrize("name", ["unknown", "gpt-4", ""])
def test_refuses_an_unknown_name_and_lists_the_known_ones(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"embedded:{SMALLEST}"):
        embedded.find_weights(name, tmp_path)


def test_refuses_a_missing_file_and_one_that_is_not_gguf(tmp_path: Path) -> None:
    fake = tmp_path / "fake.gguf"
    fake.write_text("hello")
    with pytest.raises(ValueError, match="not a GGUF file"):
        embedded.find_weights(str(fake), tmp_path)
    with pytest.raises(ValueError, match="Cannot read"):
        embedded.find_weights(str(tmp_path / "absent.gguf"), tmp_path)


def test_reports_how_to_pull_missing_weights(tmp_path: Path) -> None:
    path = embedded.find_weights(SMALLEST, tmp_path)
    with pytest.raises(embedded.EmbeddedUnavailable, match="contend models pull"):
        embedded.chat_model(path, temperature=0.5)


def test_reports_weights_that_do_not_load(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = _gguf(tmp_path / "broken.gguf", 512)
    with pytest.raises(
        embedded.EmbeddedUnavailable, match=r"Cannot load the model file broken\.gguf"
    ):
        embedded.chat_model(path, temperature=0.5)
    assert capfd.readouterr() == ("", "")


@pytest.mark.embedded
def test_speeches_stop_after_the_allowed_number_of_sentences(
    weights: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    model = embedded.chat_model(weights, temperature=0.8, max_sentences=3, max_tokens=512)
    for _ in range(3):
        answer = model.invoke(DEBATE)
        assert isinstance(answer, AIMessage)
        assert answer.response_metadata["finish_reason"] == "stop"
        assert answer.response_metadata["model_name"] == SMALLEST
        assert 2 <= _sentences(str(answer.content)) <= 3
    assert capfd.readouterr() == ("", "")


@pytest.mark.embedded
def test_speeches_stream_and_count_their_tokens(weights: Path) -> None:
    model = embedded.chat_model(weights, temperature=0.6, max_sentences=2, max_tokens=512)
    chunks = list(model.stream(DEBATE))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole = whole + chunk
    assert isinstance(whole, AIMessageChunk)
    assert sum(bool(chunk.content) for chunk in chunks) > 5
    assert whole.response_metadata["finish_reason"] == "stop"
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] > 5


@pytest.mark.embedded
def test_two_calls_run_side_by_side_on_one_server(weights: Path) -> None:
    model = embedded.chat_model(weights, temperature=0.6, max_sentences=2, max_tokens=512)
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(model.invoke, [DEBATE, DEBATE]))
    assert [each.response_metadata["finish_reason"] for each in answers] == ["stop", "stop"]


@pytest.mark.embedded
async def test_two_models_can_be_closed_and_reopened_together(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEND_HOME", str(ROOT / ".cache" / "home"))
    for spec in (f"embedded:{SMALLEST}", f"embedded:{SMALLEST}", f"embedded:{weights}"):
        async with open_models():
            both = [
                open_model(parse_spec(spec), Options(temperature=warmth)) for warmth in (0.3, 0.9)
            ]
            short = [model.bind(max_tokens=8) for model in both]
            answers = await asyncio.gather(*(model.ainvoke(DEBATE) for model in short))
            assert all(answer.text for answer in answers)


@pytest.mark.embedded
def test_one_model_serves_several_event_loops(weights: Path) -> None:
    model = embedded.chat_model(weights, temperature=0.6, max_sentences=2, max_tokens=512)
    for _ in range(2):
        answer = asyncio.run(model.ainvoke(DEBATE))
        assert answer.response_metadata["finish_reason"] == "stop"


@pytest.mark.embedded
def test_a_plain_model_answers_in_a_schema(weights: Path) -> None:
    model = embedded.chat_model(weights, temperature=0.2, max_tokens=1024)
    answer = model.with_structured_output(Critique, method="json_schema").invoke(DEBATE)
    assert isinstance(answer, Critique)


@pytest.mark.embedded
def test_settings_for_other_providers_are_ignored(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = "http://127.0.0.1:9"
    for name in ("OPENAI_API_BASE", "OPENAI_BASE_URL", "OPENAI_PROXY", "HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, nowhere)
    monkeypatch.setenv("ALL_PROXY", nowhere)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-users-own")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-users-own")
    model = embedded.chat_model(weights, temperature=0.6, max_sentences=2, max_tokens=512)
    assert model.invoke(DEBATE).response_metadata["finish_reason"] == "stop"
    assert "users-own" not in repr(model)


@pytest.mark.embedded
def test_the_server_listens_locally_and_requires_its_key(weights: Path) -> None:
    embedded.chat_model(weights, temperature=0.6)
    served = embedded._serve(weights)
    assert served is embedded._serve(weights)
    assert served.url.startswith("http://127.0.0.1:")
    assert served.key not in repr(served)
    request = urllib.request.Request(f"{served.url}/v1/chat/completions", data=b"{}")  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with pytest.raises(urllib.error.HTTPError) as caught:
        opener.open(request)
    with caught.value:
        assert caught.value.code == 401


SCRIPT = """
import sys
from pathlib import Path
from contend.models.providers.embedded import chat_model
model = chat_model(Path(sys.argv[1]), temperature=0.6, max_tokens=2000)
for chunk in model.stream("Tell me everything about the history of the world, in detail."):
    print("chunk", flush=True)
    if sys.argv[2] == "return":
        break
    if sys.argv[2] == "exit":
        sys.exit(3)
"""


@pytest.mark.embedded
@pytest.mark.parametrize(("way", "code"), [("return", 0), ("exit", 3), ("interrupt", None)])
@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_process_with_a_server_ends_promptly_and_silently(
    weights: Path, way: str, code: int | None
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(weights), way],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "chunk\n"
        if way == "interrupt":
            process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=200)
    # An uncaught Ctrl-C ends a Python process by that very signal, so nothing crashed before.
    assert process.returncode == (-signal.SIGINT if code is None else code)
    assert errors == "" or errors.strip().endswith("KeyboardInterrupt")
