"""Each debate gets its own output folder."""

from pathlib import Path

import pytest

from contend.debates.outputs import find_folder, make_folder

BEGUN = "2026-01-02T03:04:05.678901+00:00"
ONE, OTHER = "11111111-0000-4000-8000-000000000000", "22222222-0000-4000-8000-000000000000"


def made(base: Path, debate: str, begun: str = BEGUN) -> Path:
    def fill(path: Path) -> None:
        (path / "index.md").write_text(f"- **Debate:** {debate}\n")

    return make_folder(base, begun, debate, fill)


def test_folder_name_is_the_start_time_in_utc(tmp_path: Path) -> None:
    assert made(tmp_path, ONE) == tmp_path / "2026-01-02" / "2026-01-02T03-04-05_debate"
    elsewhere = made(tmp_path, ONE, "2026-01-02T04:04:06+01:00")
    assert elsewhere.name == "2026-01-02T03-04-06_debate"


def test_finds_the_existing_folder_of_a_debate(tmp_path: Path) -> None:
    assert find_folder(tmp_path, BEGUN, ONE) is None
    first = made(tmp_path, ONE)
    assert find_folder(tmp_path, BEGUN, ONE) == first
    assert made(tmp_path, ONE) == first


def test_debates_started_in_the_same_second_get_separate_folders(tmp_path: Path) -> None:
    one, other = made(tmp_path, ONE), made(tmp_path, OTHER)
    assert other.name == f"{one.name}_22222222"
    assert find_folder(tmp_path, BEGUN, ONE) == one
    assert find_folder(tmp_path, BEGUN, OTHER) == other


def test_an_interrupted_creation_leaves_no_folder(tmp_path: Path) -> None:
    def killed(path: Path) -> None:
        (path / "messages").mkdir()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_folder(tmp_path, BEGUN, ONE, killed)
    assert not list(tmp_path.glob("*/2026*"))
    other, one = made(tmp_path, OTHER), made(tmp_path, ONE)
    assert sorted(other.parent.iterdir()) == [other, one]
