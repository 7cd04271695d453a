"""The list of debates."""

from tests.cli.support import Command


def test_without_debates_it_says_how_to_start_one_and_creates_nothing(contend: Command) -> None:
    ended = contend.here("list")
    assert (ended.code, ended.out) == (0, "")
    assert "contend ask" in ended.err
    assert contend.here("list", "--json").json == []
    assert not contend.home.exists()
