"""`contend models`: the catalogue, files from a hub, and deleting them."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from contend.cli.actions.models import describe_download
from contend.models.providers.weights import (
    DEFAULT,
    DEFAULT_EMBEDDING,
    EMBEDDINGS,
    KNOWN,
    SMALLEST,
    weights_path,
)
from tests.cli.support import Command

NAME = "hf:some-owner/some-repository/small.q4.gguf"
CONTENT = b"GGUF" + bytes(range(256)) * 2000
COMMIT = "0" * 40


@contextmanager
def hub(content: bytes | None = CONTENT) -> Iterator[tuple[str, list[str]]]:
    """Run a hub with one file, or none, and record its requests."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _head(self) -> bytes:
            asked.append(f"{self.command} {self.path}")
            found = content if self.path.endswith("/resolve/main/small.q4.gguf") else None
            found = content if f"/resolve/{COMMIT}/small.q4.gguf" in self.path else found
            self.send_response(404 if found is None else 200)
            if found is None:
                self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("ETag", '"1234"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", str(len(found or b"")))
            self.end_headers()
            return found or b""

        def do_HEAD(self) -> None:
            self._head()

        def do_GET(self) -> None:
            self.wfile.write(self._head())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_download_notice_shows_size_time_and_alternatives() -> None:
    first, instead = describe_download(KNOWN[DEFAULT])
    assert first == (
        "Downloading qwen2.5-coder-1.5b, once (1,117 MB, Apache-2.0): about 2 minutes at 10 MB/s."
    )
    assert "the small model (98 MB, only for trying" in instead
    assert "`contend ask --model embedded:smollm2-135m`, or a real model: " in instead
    small, real = describe_download(KNOWN[SMALLEST])
    assert "(98 MB, Apache-2.0): about 10 seconds at 10 MB/s." in small
    assert real.startswith("Instead, a real model: `contend ask --model PROVIDER:NAME`")
    assert len(describe_download(EMBEDDINGS[DEFAULT_EMBEDDING][0])) == 1


def test_hub_file_can_be_pulled_listed_and_removed(contend: Command) -> None:
    with hub() as (address, asked):
        pulled = contend.spawn("models", "pull", NAME, HF_ENDPOINT=address)
        assert pulled.code == 0, pulled.err
        path = contend.home / "models/hf/some-owner/some-repository/small.q4.gguf"
        assert path.read_bytes() == CONTENT
        assert path.stat().st_mode & 0o777 == 0o600
        count = len(asked)
        assert all("/resolve/" in each for each in asked), "nothing else is sent"
        assert contend.spawn("models", "pull", f"embedded:{NAME}", HF_ENDPOINT=address).code == 0
        assert len(asked) == count  # it is here
    listed = {each["spec"]: each for each in contend.here("models", "list", "--json").json}
    assert listed[f"embedded:{NAME}"]["size"] == len(CONTENT)
    removed = contend.here("models", "rm", NAME)
    assert (removed.code, "1 MB freed" in removed.err) == (0, True)
    assert not path.exists()


def test_missing_hub_file_is_reported_without_a_traceback(contend: Command) -> None:
    with hub(None) as (address, _):
        refused = contend.spawn("models", "pull", NAME, HF_ENDPOINT=address)
    assert refused.code == 2
    assert f"{NAME} could not be downloaded" in refused.err
    assert "Traceback" not in refused.err


@pytest.mark.parametrize(
    "name", ["hf:a", "hf:a/b", "hf:a/../b.gguf", "hf:a/b/c.bin", "hf:/b/c.gguf"]
)
@pytest.mark.parametrize("action", ["pull", "rm"])
def test_malformed_hub_file_name_is_refused(name: str, action: str, contend: Command) -> None:
    refused = contend.here("models", action, name)
    assert refused.code == 2
    assert "is not of the form hf:OWNER/REPO/FILE.gguf" in refused.err


def test_model_list_shows_size_and_memory(contend: Command) -> None:
    shown = contend.here("models", "list").out
    assert "embedded:qwen2.5-coder-1.5b  chat  1,117 MB, needs 4 GB of memory  not down" in shown
    assert "embedded:smollm2-135m  chat  98 MB, needs 1 GB of memory  not downloaded" in shown


def test_model_that_is_not_downloaded_cannot_be_removed(contend: Command) -> None:
    refused = contend.here("models", "rm", SMALLEST)
    assert refused.code == 2
    assert "smollm2-135m is not downloaded." in refused.err
    path = weights_path(KNOWN[SMALLEST], contend.home)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"some")
    assert contend.here("models", "rm", f"embedded:{SMALLEST}").code == 0
    assert not path.exists()
