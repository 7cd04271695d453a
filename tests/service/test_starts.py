import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from contend.debates import attachments, prepare
from contend.service import uploads
from tests.service.test_debates import DEBATES, QUESTION, client, models

__all__ = ["client", "models"]

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


def test_starting_a_debate_handles_files_off_the_event_loop(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_loop: dict[str, bool] = {}

    def watched(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            on_loop[name] = _is_on_loop()
            return function(*given, **named)

        return call

    for module, name in (
        (prepare, "check_writable"),
        (attachments, "save_corpus"),
        (attachments, "save_images"),
        (uploads, "TemporaryDirectory"),
        (uploads, "_write"),
    ):
        monkeypatch.setattr(module, name, watched(name, getattr(module, name)))
    settings = {"embedding_model": "openai:m", "round_count": 1}
    described = {"question": QUESTION, "protocol": "moderated", "settings": settings}
    files = [("documents", ("notes.txt", b"It costs 40,000.")), ("images", ("a.png", PIXEL))]
    started = client.post(DEBATES, data={"debate": json.dumps(described)}, files=files)
    assert started.status_code == 201, started.text
    assert set(on_loop) == {
        *("check_writable", "save_corpus", "save_images", "TemporaryDirectory", "_write")
    }
    assert not any(on_loop.values()), on_loop


def _is_on_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
