"""Commands with debates stored on PostgreSQL."""

from pathlib import Path

import pytest

from tests.cli.support import ANSWER, ASK, Command, change_database, spoken
from tests.support.model_server import ModelServer
from tests.support.postgres import PASSWORD, PostgresServer


@pytest.fixture
def contend(contend: Command, postgres_url: str) -> Command:
    contend.env["DATABASE_URL"] = postgres_url
    return contend


def _database(contend: Command) -> tuple[str, str]:
    (found,) = [
        each for each in contend.here("doctor", "--json").json if each["what"] == "database"
    ]
    return found["level"], found["detail"]


def test_debate_is_stored_only_on_postgresql(contend: Command) -> None:
    on_file = contend.ask_here("--json", DATABASE_URL="")
    assert _database(contend)[1].endswith(", 0 debates")
    done = contend.ask_here("--json")
    assert done.code == 0, done.err
    debate = done.json["id"]
    assert spoken(done.json) == spoken(on_file.json)
    assert set(done.json) == set(on_file.json)
    assert [each["id"] for each in contend.here("list", "--json").json] == [debate]
    assert contend.here("rate", debate[:8], "9").code == 0
    rated = done.json | {"user_rating": 9, "quality_score": 9}
    assert contend.here("show", debate, "--json").json == rated
    assert ANSWER in contend.here("export", debate).out
    assert debate not in contend.here("list", "--json", DATABASE_URL="").out
    assert on_file.json["id"] not in contend.here("list", "--json").out


def test_doctor_says_which_database_is_used(contend: Command, postgres: PostgresServer) -> None:
    name = contend.env["DATABASE_URL"].rpartition("/")[2]
    place = f"PostgreSQL database '{name}' on 127.0.0.1:{postgres.port}"
    assert _database(contend) == ("ok", f"{place}, 0 debates")
    contend.env["DATABASE_URL"] = url = postgres.create()
    level, detail = _database(contend)
    assert (level, detail.partition(", ")[2]) == ("ok", "tables are created with the first debate")
    assert _database(contend)[1] == detail  # looking made none
    postgres.drop(url)
    level, detail = _database(contend)
    assert level == "problem"
    assert "does not exist" in detail
    contend.env["DATABASE_URL"] = ""
    assert _database(contend) == ("ok", "SQLite, created with the first debate")


@pytest.mark.parametrize(
    "command", [ASK, ["list"], ["show", "abc"], ["resume", "abc"], ["doctor"]], ids=lambda c: c[0]
)
def test_invalid_database_address_is_refused_without_showing_the_password(
    command: list[str], contend: Command, models: ModelServer
) -> None:
    contend.env["DATABASE_URL"] = f"postgresql://ann:x@{PASSWORD}@host/debates"
    refused = contend.here(*command)
    assert refused.code == (1 if command == ["doctor"] else 2)
    assert "DATABASE_URL cannot be read" in refused.out + refused.err
    assert PASSWORD not in refused.out + refused.err
    assert models.calls == []


@pytest.mark.parametrize(
    "command",
    [
        *(ASK, ["list"], ["show", "abc"], ["resume", "abc"], ["rate", "abc", "8"], ["due"]),
        *(
            ["export", "abc"],
            ["prune", "--damaged", "--yes"],
            ["scoreboard"],
            ["resolve", "abc", "yes"],
            ["serve"],
        ),
    ],
    ids=lambda c: c[0],
)
def test_a_database_of_a_newer_release_is_refused_and_left_alone(
    command: list[str], tmp_path: Path, models: ModelServer
) -> None:
    contend = Command(tmp_path / "home", models)
    assert contend.ask_here().code == 0
    asked = len(models.calls)
    change_database(contend, "UPDATE contend_version SET version_num = '9000'")
    before = (contend.home / "contend.db").read_bytes()
    ended = contend.here(*command, CONTEND_SERVICE_TOKEN="canary-token-0123456789abcdef")
    assert (ended.code, ended.out, len(models.calls)) == (2, "", asked)
    assert "newer version of Contend" in ended.err.splitlines()[-1]
    assert (contend.home / "contend.db").read_bytes() == before
