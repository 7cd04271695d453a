"""Where folders of debates lie: one for each debate, whoever began in the same second."""

from pathlib import Path

import pytest

from contend.debates.outputs import find_folder, make_folder

BEGUN = "2026-01-02T03:04:05.678901+00:00"
ONE, OTHER = "11111111-0000-4000-8000-000000000000", "22222222-0000-4000-8000-000000000000"


def made(base: Path, debate: str, begun: str = BEGUN) -> Path:
    def fill(path: Path) -> None:
        (path / "index.md").write_text(f"- **Debate:** {debate}\n")

    return make_folder(base, begun, debate, fill)


def test_a_folder_is_named_after_the_second_the_debate_began(tmp_path: Path) -> None:
    assert made(tmp_path, ONE) == tmp_path / "2026-01-02" / "2026-01-02T03-04-05_debate"
    elsewhere = made(tmp_path, ONE, "2026-01-02T04:04:06+01:00")
    assert elsewhere.name == "2026-01-02T03-04-06_debate"


def test_a_debate_finds_its_folder_again(tmp_path: Path) -> None:
    assert find_folder(tmp_path, BEGUN, ONE) is None
    first = made(tmp_path, ONE)
    assert find_folder(tmp_path, BEGUN, ONE) == first
    assert made(tmp_path, ONE) == first


def test_debates_of_the_same_second_do_not_share_a_folder(tmp_path: Path) -> None:
    one, other = made(tmp_path, ONE), made(tmp_path, OTHER)
    assert other.name == f"{one.name}_22222222"
    assert find_folder(tmp_path, BEGUN, ONE) == one
    assert find_folder(tmp_path, BEGUN, OTHER) == other


def test_whoever_is_killed_while_a_folder_is_made_leaves_none_behind(tmp_path: Path) -> None:
    def killed(path: Path) -> None:
        (path / "messages").mkdir()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_folder(tmp_path, BEGUN, ONE, killed)
    assert not list(tmp_path.glob("*/2026*"))
    other, one = made(tmp_path, OTHER), made(tmp_path, ONE)
    assert sorted(other.parent.iterdir()) == [other, one]
