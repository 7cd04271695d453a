import pytest

from contend.debates.record import SERVER
from contend.debates.repository import Repository
from contend.graph.record import Status
from tests.cli.support import QUESTION, Command


def test_one_debate_is_deleted_after_a_confirmation(contend: Command) -> None:
    debate, other = (contend.ask_here("--json", "--quiet").json["id"] for _ in range(2))
    refused = contend.here("delete", debate[:8], stdin="")
    assert (refused.code, refused.out) == (2, "")
    assert "add --yes" in refused.err
    deleted = contend.here("delete", debate[:8], "--yes")
    assert (deleted.code, deleted.err) == (0, f"Deleted debate {debate[:8]} ({QUESTION}).\n")
    assert [each["id"] for each in contend.here("list", "--json").json] == [other]


@pytest.mark.parametrize("status", ["done", "paused"])
def test_debate_on_an_unreachable_server_can_be_deleted_locally(
    contend: Command, status: Status
) -> None:
    debate = contend.ask_here("--json", "--quiet").json["id"]
    records = Repository(contend.home / "contend.db")
    found = records.find(debate)
    records.change_settings(debate, {**found.settings, SERVER: "http://127.0.0.1:9"})
    lease = records.acquire(debate)
    records.save(lease, status, found.as_state(), found.last_seq)
    lease.release()
    records.close()
    if status == "paused":
        kept = contend.here("delete", debate, "--yes")
        assert kept.code == 2
        assert "add --here" in kept.err
        moved = contend.here("resume", debate, "--server", "http://127.0.0.1:10")
        assert (moved.code, "127.0.0.1:10 cannot be reached" in moved.err) == (2, True)
    deleted = contend.here("delete", debate, "--yes", *(["--here"] if status == "paused" else []))
    assert deleted.code == 0, deleted.err
    assert "remains on its server" in deleted.err
    assert not contend.here("list", "--json").json
