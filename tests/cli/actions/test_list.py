import pytest

from contend.debates.exports.wording import local_time
from tests.cli.support import Command, break_table, change_database


def test_empty_list_shows_how_to_start_a_debate_and_creates_nothing(contend: Command) -> None:
    ended = contend.here("list")
    assert (ended.code, ended.out) == (0, "")
    assert "contend ask" in ended.err
    assert contend.here("list", "--json").json == []
    assert not contend.home.exists()


def test_damaged_debate_is_skipped_and_reported(contend: Command) -> None:
    good, bad = (contend.ask_here("--json").json["id"] for _ in range(2))
    cut = "UPDATE debates SET state = substr(state, 1, 100) WHERE id = ?"
    change_database(contend, cut, bad)
    listed = contend.here("list", "--json")
    assert (listed.code, [each["id"] for each in listed.json]) == (0, [good])
    (line,) = listed.err.splitlines()
    assert line.startswith(f"Skipped: The record of debate {bad} is damaged.")
    assert "contend prune --damaged" in line


@pytest.mark.parametrize("command", [["show"], ["show", "--json"], ["export"], ["resume"]], ids=str)
def test_commands_report_a_damaged_debate(command: list[str], contend: Command) -> None:
    debate = contend.ask_here("--json").json["id"]
    change_database(contend, "UPDATE debate_turns SET turn = '{'")
    ended = contend.here(*command, debate[:8])
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"Error: The record of debate {debate} is damaged.")
    assert contend.here("list").code == 0


def test_damaged_database_page_is_reported(contend: Command) -> None:
    debate = contend.ask_here("--json").json["id"]
    break_table(contend, "debates")
    listed, shown = contend.here("list"), contend.here("show", debate)
    assert (listed.code, shown.code) == (2, 1)
    assert "contend doctor" in listed.err
    assert f"debate {debate} is damaged" in shown.err


def test_search_lists_only_matching_debates(contend: Command) -> None:
    debate = contend.ask_here("--json").json["id"]
    for words in ("monolith", "BOUNDARIES inside"):
        assert [d["id"] for d in contend.here("list", "--search", words, "--json").json] == [debate]
    missing = contend.here("list", "--search", "zebra")
    assert (missing.code, missing.out) == (0, "")
    assert missing.err == "No debate has 'zebra' in its question, title or answer.\n"


@pytest.mark.parametrize("width", [20, 30, 40, 60, 100, 150, 160, 200])
def test_id_date_and_status_are_never_cut(contend: Command, width: int) -> None:
    record = contend.ask_here("--json", "--pause", "each_round").json
    out = contend.here("list", COLUMNS=str(width)).out
    lines = out.splitlines()
    for fact in (record["id"][:8], local_time(record["created_at"]), "paused"):
        assert any(fact in line for line in lines)
    assert all(len(line) <= width for line in lines)
