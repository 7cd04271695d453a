"""`contend delete`."""

from tests.cli.support import QUESTION, Command


def test_one_debate_is_deleted_after_a_confirmation(contend: Command) -> None:
    debate, other = (contend.ask_here("--json", "--quiet").json["id"] for _ in range(2))
    refused = contend.here("delete", debate[:8], stdin="")
    assert (refused.code, refused.out) == (2, "")
    assert "add --yes" in refused.err
    deleted = contend.here("delete", debate[:8], "--yes")
    assert (deleted.code, deleted.err) == (0, f"Deleted debate {debate[:8]} ({QUESTION}).\n")
    assert [each["id"] for each in contend.here("list", "--json").json] == [other]
