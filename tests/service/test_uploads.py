"""Files sent with a question: their names are the client's, and may be anything."""

import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from contend.service.uploads import usable_name
from tests.service.test_debates import DEBATES, QUESTION, QUICK, client, events, models

__all__ = ["client", "models"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("notes.txt", "notes.txt"),
        ("../../notes.txt", "notes.txt"),
        ("C:\\files\\notes.txt", "notes.txt"),
        (".env", "env"),
        ("", "file"),
        ("..", "file"),
        ("a\x00b\n.txt", "ab.txt"),
        ("\ud800.txt", "txt"),
        ("Überblick.md", "Überblick.md"),
    ],
)
def test_names(given: str, name: str) -> None:
    assert usable_name(given) == name


@pytest.mark.parametrize("letter", ["x", "é", "€", "🧱"])
def test_a_long_name_keeps_its_suffix_and_fits(letter: str, tmp_path: Path) -> None:
    name = usable_name(f"{letter * 500}.txt")
    assert name.endswith(f"{letter}.txt")
    (tmp_path / name).write_text("It fits.")


@pytest.mark.parametrize("name", ["no\x00tes.txt", f"{'🧱' * 120}.txt", "..", "/"])
def test_no_name_breaks_the_service(client: TestClient, name: str) -> None:
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
