from pathlib import Path

import pytest
import yaml

from contend.models.files import parse_yaml, usable_name

BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nd: &d [*c, *c]\ne: [*d, *d]"


def test_yaml_is_parsed() -> None:
    assert parse_yaml("a: [1, two]") == {"a": [1, "two"]}


@pytest.mark.parametrize("text", [BOMB, "a: &a [*a]", "a: &a 1\nb: *a", "a: ["])
def test_refuses_yaml_with_aliases_or_syntax_errors(text: str) -> None:
    with pytest.raises(yaml.YAMLError):
        parse_yaml(text)


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
def test_makes_upload_names_safe(given: str, name: str) -> None:
    assert usable_name(given) == name


@pytest.mark.parametrize("letter", ["x", "é", "€", "🧱"])
def test_a_long_name_keeps_its_suffix_and_fits(letter: str, tmp_path: Path) -> None:
    name = usable_name(f"{letter * 500}.txt")
    assert name.endswith(f"{letter}.txt")
    (tmp_path / name).write_text("It fits.")
