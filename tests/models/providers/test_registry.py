"""Model specs, opening models, and the checks before any paid call."""

import asyncio
import json
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI

from contend.graph.errors import BadInput
from contend.models.providers import generic, registry
from contend.models.providers.registry import (
    ModelSpec,
    Opened,
    Options,
    Provider,
    check_models,
    close_models,
    open_model,
    open_models,
    parse_spec,
    provider_of,
    register,
)
from tests.support.model_server import ModelServer
from tests.support.scripted import ScriptedChat

ROOT = Path(__file__).parents[3]
HTML = (200, "<!doctype html>\n<p>Hello</p>")
Answers = dict[str, tuple[int, str]]
"""Status and body by path; anything else is a 404."""


@contextmanager
def answering(answers: Answers) -> Iterator[str]:
    """Run a web server that is not a model server; yield its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = answers.get(self.path, answers.get("*", (404, "no such page")))
            kind = "application/json" if body.startswith(("{", "[")) else "text/html"
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        thread = Thread(target=web.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{web.server_port}"
        web.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("written", "provider", "name"),
    [
        ("ollama:qwen3:32b", "ollama", "qwen3:32b"),
        ("qwen3:32b", "ollama", "qwen3:32b"),
        ("nomic-embed-text", "ollama", "nomic-embed-text"),
        (" openai:gpt-5-mini ", "openai", "gpt-5-mini"),
        ("openrouter:vendor/model:free", "openrouter", "vendor/model:free"),
        ("embedded:smollm2", "embedded", "smollm2"),
        ("anthropic:some-model", "anthropic", "some-model"),
        # names of Ollama models that look a little like providers
        ("llama3:8b", "ollama", "llama3:8b"),
        ("llama3.3:70b", "ollama", "llama3.3:70b"),
        ("codellama:7b", "ollama", "codellama:7b"),
        ("mistral:7b", "ollama", "mistral:7b"),
        ("deepseek-r1:14b", "ollama", "deepseek-r1:14b"),
        ("cogito:8b", "ollama", "cogito:8b"),
        ("gemma3:27b", "ollama", "gemma3:27b"),
    ],
)
def test_a_spec_names_provider_and_model(written: str, provider: str, name: str) -> None:
    assert parse_spec(written) == ModelSpec(provider, name)
    assert parse_spec(str(parse_spec(written))) == ModelSpec(provider, name)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("opnai:x", "Did you mean 'openai:x'?"),
        ("olama:qwen3", "Did you mean 'ollama:qwen3'?"),
        ("openruter:a/b", "Did you mean 'openrouter:a/b'?"),
        ("anthropc:x", "Did you mean 'anthropic:x'?"),
        ("openai:", "has a provider but no model name"),
        ("openai", "has a provider but no model name"),
        ("", "Unknown provider ''"),
        (":x", "Unknown provider ''"),
    ],
)
def test_refuses_an_invalid_spec_with_a_hint(written: str, said: str) -> None:
    with pytest.raises(BadInput) as refused:
        parse_spec(written)
    assert said in str(refused.value)


class Counted:
    """A provider that records what was opened and closed; closing `bad` fails."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.closed: list[str] = []

    def open(self, name: str, options: Options) -> Opened[BaseChatModel]:
        async def close() -> None:
            self.closed.append(name)
            if name == "bad":
                raise RuntimeError("the connection is in pieces")

        self.opened.append(name)
        return Opened(ScriptedChat(part=name), close)

    async def check(self, names: list[str]) -> None: ...


@pytest.fixture
def counted() -> Iterator[Counted]:
    counting = Counted()
    register("counted", Provider(open=counting.open, check=counting.check))
    yield counting
    registry._registered.pop("counted")


async def test_opens_each_model_once_and_closes_it_once(counted: Counted) -> None:
    spec = parse_spec("counted:a")
    assert open_model(spec, Options()) is open_model(spec, Options())
    assert open_model(spec, Options(temperature=1)) is not open_model(spec, Options())
    await close_models()
    assert (counted.opened, counted.closed) == (["a", "a"], ["a", "a"])
    await close_models()
    assert counted.closed == ["a", "a"]


async def test_the_last_run_of_a_loop_closes_its_models(counted: Counted) -> None:
    fast_ended = asyncio.Event()

    async def slow() -> None:
        async with open_models():
            model = open_model(parse_spec("counted:a"), Options())
            await fast_ended.wait()
            assert counted.closed == []
            assert open_model(parse_spec("counted:a"), Options()) is model

    async def fast() -> None:
        async with open_models():
            open_model(parse_spec("counted:a"), Options())
        fast_ended.set()

    await asyncio.gather(slow(), fast())
    assert (counted.opened, counted.closed) == (["a"], ["a"])


async def test_a_failed_run_closes_all_models_even_if_one_close_fails(
    counted: Counted,
) -> None:
    async def fail() -> None:
        async with open_models():
            for name in ("bad", "a"):
                open_model(parse_spec(f"counted:{name}"), Options())
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert counted.closed == ["bad", "a"]


def test_every_event_loop_counts_its_own_runs(counted: Counted) -> None:
    async def run() -> None:
        async with open_models():
            open_model(parse_spec("counted:a"), Options())

    asyncio.run(run())
    asyncio.run(run())
    assert counted.closed == ["a", "a"]


def refused(*specs: str) -> str:
    with pytest.raises(BadInput) as caught:
        asyncio.run(check_models(specs))
    return str(caught.value)


def test_check_accepts_available_models(server: ModelServer) -> None:
    asyncio.run(check_models(["openai:m1", "ollama:m2", "openrouter:m1", "m1", "scripted:any"]))
    assert server.calls == []


def test_a_missing_key_is_named(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv("OPENROUTER_API_KEY", "  ")
    assert "OPENAI_API_KEY is not set" in refused("openai:m1")
    assert "OPENROUTER_API_KEY is not set" in refused("openrouter:m1")


@pytest.mark.parametrize("key", ["canary-1\ncanary-2", "canary-1\r\nX: y", "two canaries"])
def test_a_key_with_a_line_break_is_refused_before_it_is_sent(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    said = refused("openai:m1")
    assert said == "OPENAI_API_KEY contains a space or a line break. Set it to the key alone."


def test_reports_a_refused_key_without_showing_it(server: ModelServer) -> None:
    server.api_key = "another"
    said = refused("openai:m1")
    assert "refused the key in OPENAI_API_KEY" in said
    assert "canary" not in said


def test_suggests_the_nearest_name_for_an_unknown_model(server: ModelServer) -> None:
    server.models = ["qwen3:32b"]
    said = refused("ollama:qwen3:30b")
    assert "'ollama:qwen3:32b'" in said
    assert "ollama pull qwen3:30b" in said
    assert server.calls == []


@pytest.mark.parametrize("address", ["", "https://api.openai.com/v1"])
def test_refuses_a_model_that_openai_does_not_list(
    address: str, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def listed(*_: object) -> list[str]:
        return ["gpt-5-mini"]

    monkeypatch.setenv("OPENAI_BASE_URL", address)
    monkeypatch.setattr("contend.models.providers.openai._list_models", listed)
    assert "Did you mean 'openai:gpt-5-mini'?" in refused("openai:gpt5-mini")


def test_a_compatible_server_may_serve_a_model_it_does_not_list(server: ModelServer) -> None:
    server.models = [f"m{number}" for number in range(10)]
    (notice,) = asyncio.run(check_models(["openai:m1", "openai:hidden"]))
    assert "does not list the model 'hidden'; it lists m0, m1, m2" in notice
    assert "m7 and 2 more. The debate uses the name as given." in notice
    assert server.calls == []


def test_a_pulled_model_may_be_named_without_its_tag(server: ModelServer) -> None:
    server.models = ["nomic:latest"]
    asyncio.run(check_models(["ollama:nomic", "ollama:nomic:latest"]))


def test_reports_how_to_start_ollama_if_it_is_not_running() -> None:
    assert "`ollama serve`" in refused("ollama:m1")


def test_reports_an_unreachable_service_without_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789abcdef")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    said = refused("openai:m1")
    assert "Cannot reach openai at http://127.0.0.1:1/v1" in said
    assert "canary" not in said


@pytest.mark.parametrize(
    ("spec", "install"),
    [
        ("groq:x", "pip install 'contend[groq]'"),
        ("google_genai:x", "pip install 'contend[google-genai]'"),
        ("bedrock_converse:x", "pip install 'contend[aws]'"),
        ("cohere:x", "langchain-cohere"),
    ],
)
def test_a_provider_whose_package_is_missing_is_refused(spec: str, install: str) -> None:
    said = refused(spec)
    assert "needs a package that is not installed" in said
    assert install in said


def test_every_extra_that_an_error_names_can_be_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert {*generic._EXTRAS.values(), "keyring", "evals"} == set(project["optional-dependencies"])


@pytest.mark.parametrize("answer", [HTML, (200, "{}"), (200, "[1]"), (404, "no"), (500, "no")])
def test_refuses_a_server_that_is_not_ollama(
    answer: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering({"*": answer}) as address:
        monkeypatch.setenv("OLLAMA_HOST", address)
        said = refused("ollama:m1")
    assert "OLLAMA_HOST is not Ollama" in said
    assert "\n" not in said


@pytest.mark.parametrize("host", ["127.0.0.1:99999", "http://127.0.0.1:99999", "http://[::1"])
def test_refuses_an_invalid_ollama_host(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    assert "OLLAMA_HOST is not a valid address" in refused("ollama:m1")


def at(address: str, monkeypatch: pytest.MonkeyPatch, provider: str = "OPENAI") -> None:
    monkeypatch.setenv(f"{provider}_API_KEY", "sk-canary-0123456789abcdef")
    monkeypatch.setenv(f"{provider}_BASE_URL", address)


MALFORMED = [
    "htp:/foo", "foo", "http://", "https:///v1", "http://a b/v1", "http://127.0.0.1:99999/v1",
    "http://127.0.0.1:port/v1", "http://h\n/v1", "http://h\x07/v1", "http://[::1/v1", "http://:80",
    "ftp://127.0.0.1/v1",
]  # fmt: skip


@pytest.mark.parametrize("address", MALFORMED)
@pytest.mark.parametrize("provider", ["OPENAI", "OPENROUTER"])
def test_a_malformed_address_is_refused(
    provider: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(address, monkeypatch, provider)
    said = refused(f"{provider.lower()}:m1")
    assert said.startswith(f"{provider}_BASE_URL is not a valid address: ")
    assert said.isprintable()


async def test_an_empty_address_means_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    at(" ", monkeypatch)
    model = open_model(parse_spec("openai:m1"), Options())
    assert isinstance(model, ChatOpenAI)
    assert str(model.root_async_client.base_url) == "https://api.openai.com/v1/"


def test_refuses_a_server_that_returns_html_instead_of_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with answering({"*": HTML}) as address:
        at(address.replace("//", "//user:hunter2pass@"), monkeypatch)
        said = refused("openai:m1")
    assert said.startswith("The server at http://***@127.0.0.1:")
    assert "is not openai-compatible" in said


@pytest.mark.parametrize("status", [400, 404, 405, 429, 500, 503])
def test_accepts_a_model_if_the_model_list_fails(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering({"*": (status, '{"error": {"message": "no"}}')}) as address:
        at(address, monkeypatch)
        asyncio.run(check_models(["openai:m1"]))


@pytest.mark.parametrize("status", [401, 403])
def test_reports_a_refused_key_in_one_line(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with answering({"*": (status, "<p>\nno: sk-canary-0123456789abcdef\n</p>")}) as address:
        at(address, monkeypatch)
        said = refused("openai:m1")
    assert "refused the key in OPENAI_API_KEY" in said
    assert "\n" not in said
    assert "canary" not in said


@pytest.mark.parametrize("body", ['[{"id": "m1"}, {"name": "odd"}]', "[]", "{}", '{"data": 1}'])
def test_accepts_model_lists_in_unexpected_formats(
    body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering({"/models": (200, body)}) as address:
        at(address, monkeypatch)
        assert asyncio.run(check_models(["openai:m1"])) == []
        assert len(asyncio.run(check_models(["openai:m2"]))) == ("m1" in body)


@pytest.mark.parametrize(
    "address",
    [
        "http://me:hunter2pass@127.0.0.1:1/v1",
        "http://me:hunter2pass@127.0.0.1:99999",
        "me:hunter2pass@y",
    ],
)
def test_never_shows_a_password_in_a_url(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at(address, monkeypatch)
    said = refused("openai:m1")
    assert said.startswith(("Cannot reach openai at", "OPENAI_BASE_URL is not a valid"))
    assert "hunter2" not in said
    assert "\n" not in said


def test_checks_the_key_with_openrouter(monkeypatch: pytest.MonkeyPatch) -> None:
    models = json.dumps({"data": [{"id": "vendor/m1"}]})
    answers: Answers = {"/models": (200, models), "/key": (401, '{"error": {"message": "no"}}')}
    with answering(answers) as address:
        at(address, monkeypatch, "OPENROUTER")
        assert "refused the key in OPENROUTER_API_KEY" in refused("openrouter:vendor/m1")
        for other in (200, 403, 404, 429, 500):
            answers["/key"] = (other, "{}")
            asyncio.run(check_models(["openrouter:vendor/m1"]))


def test_accepts_openrouter_variants_of_a_listed_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = json.dumps({"data": [{"id": "vendor/m1"}, {"id": "vendor/m2:free"}]})
    with answering({"/models": (200, models)}) as address:
        at(address, monkeypatch, "OPENROUTER")
        names = ["vendor/m1:online", "vendor/m1:nitro", "vendor/m1", "vendor/m2:free"]
        asyncio.run(check_models(f"openrouter:{name}" for name in names))
        assert "no model 'vendor/m2:online'" in refused("openrouter:vendor/m2:online")


@pytest.mark.usefixtures("server")
async def test_models_have_no_chunk_timeout_of_their_own() -> None:
    for spec in ("openai:m1", "openrouter:m1"):
        model = open_model(parse_spec(spec), Options())
        assert isinstance(model, ChatOpenAI)
        assert model.stream_chunk_timeout is None


async def test_other_openai_style_models_have_no_chunk_timeout_either(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def init(name: str, **_: object) -> BaseChatModel:
        return ChatOpenAI(model=name, api_key="sk-canary-0123456789abcdef")

    monkeypatch.setattr(generic, "init_chat_model", init)
    model = open_model(parse_spec("xai:m1"), Options())
    assert isinstance(model, ChatOpenAI)
    assert model.stream_chunk_timeout is None


def test_reports_an_unusable_provider_in_one_line_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def init(*_: object, **__: object) -> None:
        raise RuntimeError("no luck at http://me:hunter2pass@host\nand more\nlines")

    monkeypatch.setattr(generic, "init_chat_model", init)
    monkeypatch.setenv("GROQ_API_KEY", "gsk_0123456789")
    assert refused("groq:x") == "Cannot use groq:x: no luck at http://***@host"
    monkeypatch.delenv("GROQ_API_KEY")
    assert refused("groq:x").endswith("Add it with `contend keys set GROQ_API_KEY`.)")


def test_finds_a_missing_key_even_if_the_model_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(name: str, **_: object) -> BaseChatModel:
        return ChatOpenAI(model=name, api_key="sk-canary-0123456789abcdef")

    monkeypatch.setattr(generic, "init_chat_model", init)
    said = "ANTHROPIC_API_KEY is not set; anthropic models need it. "
    assert refused("anthropic:x") == f"{said}Add it with `contend keys set ANTHROPIC_API_KEY`."
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-canary-0123456789abcdef")
    monkeypatch.setitem(generic._MODEL_LISTS, "anthropic", "http://127.0.0.1:1/v1/models")
    assert asyncio.run(check_models(["anthropic:x"])) == [], "it cannot be reached"


@pytest.mark.parametrize("provider", ["anthropic", "groq"])
def test_finds_a_wrong_key_even_if_the_model_opens(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(name: str, **_: object) -> BaseChatModel:
        return ChatOpenAI(model=name, api_key="sk-canary-0123456789abcdef")

    monkeypatch.setattr(generic, "init_chat_model", init)
    key = f"{provider.upper()}_API_KEY"
    monkeypatch.setenv(key, "sk-canary-0123456789abcdef")
    said = f"{provider} refused the key in {key}. Correct it in the environment."
    with answering({"/models": (401, "{}"), "/busy": (429, "{}"), "/v1": (200, "{}")}) as address:
        monkeypatch.setitem(generic._MODEL_LISTS, provider, f"{address}/models")
        assert refused(f"{provider}:x") == said
        monkeypatch.setenv(f"{provider.upper()}_BASE_URL", "http://127.0.0.1:1")
        assert asyncio.run(check_models([f"{provider}:x"])) == [], "another service has its key"
        monkeypatch.delenv(f"{provider.upper()}_BASE_URL")
        for path in ("busy", "v1"):
            monkeypatch.setitem(generic._MODEL_LISTS, provider, f"{address}/{path}")
            assert asyncio.run(check_models([f"{provider}:x"])) == []


def test_names_all_missing_models_and_keys_together(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    said = refused("ollama:m8", "openai:m1", "ollama:m9", "openrouter:a/b", "ollama:m1")
    for fix in ("`ollama pull m8`", "`ollama pull m9`", "contend keys set OPENAI_API_KEY"):
        assert fix in said
    assert "openrouter has no model 'a/b'" in said
    assert "pull m1`" not in said


def test_shows_the_pydantic_error_without_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def init(*_: object, **__: object) -> ChatOpenAI:
        return ChatOpenAI(model="m", temperature="hunter2pass")

    monkeypatch.setattr(generic, "init_chat_model", init)
    said = refused("groq:x")
    assert "valid number" in said
    assert "hunter2pass" not in said


@pytest.mark.parametrize(
    ("provider", "reports"),
    [("anthropic", True), ("google_genai", True), ("groq", True), ("huggingface", False)],
)
def test_knows_which_providers_report_a_finish_reason(provider: str, reports: bool) -> None:
    assert provider_of(parse_spec(f"{provider}:m")).reports_finish is reports
