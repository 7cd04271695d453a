"""Uploaded files with unusual names."""

import json

import pytest
from starlette.testclient import TestClient

from tests.service.test_debates import DEBATES, QUESTION, QUICK, client, events, models

__all__ = ["client", "models"]


@pytest.mark.parametrize("name", ["no\x00tes.txt", f"{'🧱' * 120}.txt", "..", "/"])
def test_an_unusual_file_name_causes_no_server_error(client: TestClient, name: str) -> None:
    described = {"question": QUESTION, "settings": QUICK | {"embedding_model": "openai:m"}}
    lines = [
        b"--x",
        b'Content-Disposition: form-data; name="debate"',
        b"",
        json.dumps(described).encode(),
        b"--x",
        f'Content-Disposition: form-data; name="documents"; filename="{name}"'.encode(),
        b"Content-Type: text/plain",
        b"",
        b"The night shift costs 40,000 a year.",
        b"--x--",
        b"",
    ]
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    answer = client.post(DEBATES, content=b"\r\n".join(lines), headers=headers)
    assert answer.status_code in (201, 422), answer.text
    if answer.status_code == 201:
        assert events(client, answer.json()["id"])[-1]["event"] == "complete"
