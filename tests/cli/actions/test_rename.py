import pytest

from tests.cli.support import QUESTION, Command


def test_the_title_is_shown_and_the_question_stays(contend: Command) -> None:
    debate = contend.ask_here("--json").json["id"]
    renamed = contend.here("rename", debate[:8], "  Split the\nmonolith ")
    assert (renamed.code, renamed.out) == (0, "")
    assert renamed.err == f"Debate {debate[:8]} is now called: Split the monolith\n"
    for width in ("60", "160"):
        listed = contend.here("list", COLUMNS=width).out
        assert "Split the monolith" in listed
        assert QUESTION not in listed
    (row,) = contend.here("list", "--search", "split the mono", "--json").json
    assert (row["title"], row["question"]) == ("Split the monolith", QUESTION)
    record = contend.here("show", debate, "--json").json
    assert (record["title"], record["query"]) == ("Split the monolith", QUESTION)
    assert contend.here("show", debate).out.startswith(f"Split the monolith\n{QUESTION}\n")
    text = contend.here("export", debate).out
    assert text.startswith("# Split the monolith\n")
    assert f"## Question\n\n```text\n{QUESTION}\n```" in text
    page = contend.here("export", debate, "--format", "html").out
    assert "<title>Split the monolith</title>" in page
    assert f"<h1>Split the monolith</h1>\n<p>{QUESTION}</p>" in page


def test_an_empty_title_shows_the_question_again(contend: Command) -> None:
    debate = contend.ask_here("--json").json["id"]
    contend.here("rename", debate, "Something")
    assert contend.here("rename", debate, "").code == 0
    assert QUESTION in contend.here("list").out
    assert "title" not in contend.here("show", debate, "--json").json
    assert contend.here("export", debate).out.startswith(f"# {QUESTION}\n")


@pytest.mark.parametrize(
    ("title", "said"),
    [
        ("x" * 201, "The title has 201 characters; the limit is 200."),
        ("a\x1b[31mb", "The title has characters that cannot be displayed."),
    ],
)
def test_a_bad_title_changes_nothing(contend: Command, title: str, said: str) -> None:
    debate = contend.ask_here("--json").json["id"]
    ended = contend.here("rename", debate, title)
    assert (ended.code, ended.err) == (2, f"Error: {said}\n")
    assert contend.here("list", "--json").json[0]["title"] is None


def test_a_title_survives_a_resume(contend: Command) -> None:
    debate = contend.ask_here("--json", "--pause", "each_round").json["id"]
    contend.here("rename", debate, "Monolith")
    while contend.here("resume", debate, "-q").code == 3:
        pass
    assert contend.here("list", "--json").json[0]["title"] == "Monolith"
