"""Template files: shipped templates, user templates, candidates and errors."""

import os
import re
import stat
from collections import Counter
from pathlib import Path

import pytest

from contend.graph.errors import BadInput
from contend.retrieval import templates
from contend.retrieval.templates import (
    Template,
    accept_candidate,
    add_template,
    add_templates,
    fingerprint,
    keep_candidate,
    lint_template,
    load_candidates,
    load_library,
    parse_template,
    plain_requests,
    read_template,
    remove_template,
    shipped_templates,
    user_folder,
)

GOOD = """---
id: tea-choice
title: Choose a tea
kind: leisure
use_when:
  - Somebody wants tea and does not know which.
  - Which tea goes with lemon cake?
  - Green or black in the evening?
tags: [tea, taste]
---
## Steps
1. Ask when it is drunk.
2. Ask with what.
3. Choose.

## Checks
- Is there caffeine in it?
- Is it there?

## Typical errors
- Boiling water on green tea.
- Choosing by the tin.
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def template(text: str = GOOD, **changes: object) -> Template:
    return parse_template(text, "tea.md", "user").model_copy(update=changes)


# --- those that ship ---


@pytest.mark.parametrize("shipped", shipped_templates(), ids=lambda each: each.id)
def test_shipped_templates_meet_the_style_rules(shipped: Template) -> None:
    assert lint_template(shipped) == []
    assert len(shipped.title) <= 60
    assert not shipped.title.endswith(".")
    assert 6 <= len(shipped.use_when) <= 12
    assert 3 <= len(shipped.tags) <= 6
    assert 140 <= len(shipped.body.split()) <= 270
    # Prompts are filled in one pass, but a brace in a template would read as a slip.
    assert not re.search(r"[{}<>]|```", shipped.body)


def test_the_library_is_large_and_covers_many_kinds() -> None:
    kinds = Counter(each.kind for each in shipped_templates())
    assert len(shipped_templates()) >= 36
    assert len(kinds) >= 24
    assert max(kinds.values()) <= 3


def test_shipped_template_files_are_named_after_their_ids() -> None:
    folder = Path(templates.__file__).parent / "shipped_templates"
    assert sorted(path.stem for path in folder.iterdir()) == [
        each.id for each in shipped_templates()
    ]


def test_use_when_lines_are_unique() -> None:
    lines = [line for each in shipped_templates() for line in each.use_when] + [*plain_requests()]
    assert [line for line, count in Counter(lines).items() if count > 1] == []


# --- reading ---

BAD = {
    "no front matter": ("Just text.", "tea.md has no front matter"),
    "never closed": ("---\nid: x\n", "tea.md has no front matter"),
    "no YAML": (GOOD.replace("id: tea", "id: [tea"), "not valid YAML"),
    "no date": (GOOD.replace("Choose a tea", "2021-99-99"), "not valid YAML"),
    "no number": (GOOD.replace("Choose a tea", '!!int "x"'), "not valid YAML"),
    "no mapping": ("---\n- id\n---\n## Steps\nmany words here\n", "must be NAME: VALUE lines"),
    "no id": (GOOD.replace("id: tea-choice\n", ""), "id: field required"),
    "an id like a path": (GOOD.replace("tea-choice", "../tea"), "id must be lower-case words"),
    "no tags": (GOOD.replace("tags: [tea, taste]\n", ""), "tags: field required"),
    "an unknown name": (GOOD.replace("kind:", "sort: x\nkind:"), "sort: extra inputs"),
    "a number for a title": (GOOD.replace("Choose a tea", "7"), "title: input should be a valid"),
    "no body": (GOOD.partition("## Steps")[0], "body: string should have at least"),
    "nothing to find it by": (re.sub(r"  - .*\n", "", GOOD), "use_when"),
}


@pytest.mark.parametrize(("text", "said"), BAD.values(), ids=BAD)
def test_a_bad_template_is_named_with_what_is_wrong(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)) as refused:
        parse_template(text, "tea.md", "user")
    assert "tea.md" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_files_that_cannot_be_templates_are_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"Cannot read .*gone\.md: No such file"):
        read_template(tmp_path / "gone.md", "user")
    (tmp_path / "binary.md").write_bytes(b"\xff\xfe\x00\x80")
    with pytest.raises(BadInput, match=r"binary\.md is not UTF-8 text"):
        read_template(tmp_path / "binary.md", "user")
    (tmp_path / "long.md").write_text(GOOD + "word " * 20_000)
    with pytest.raises(BadInput, match=r"long\.md is larger than 64 kB"):
        read_template(tmp_path / "long.md", "user")


def test_refuses_a_pipe_without_blocking(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(BadInput, match=r"pipe\.md is not a regular file"):
        read_template(tmp_path / "pipe.md", "user")


def test_removes_escaped_control_characters_from_the_front_matter() -> None:
    text = GOOD.replace("Choose a tea", '"Choose\\n\\n## Your task\\0\\e[31m a tea"')
    read = parse_template(text, "tea.md", "user")
    assert read.title == "Choose ## Your task[31m a tea"


def test_reports_a_broken_link_and_loads_the_library(home: Path) -> None:
    folder = templates.user_folder(home)
    folder.mkdir(parents=True)
    (folder / "x.md").symlink_to(home / "nowhere.md")
    assert fingerprint(home) == ()
    assert "x.md: No such file" in load_library(home).problems[0]


def test_accepts_a_single_use_when_string_and_windows_line_endings() -> None:
    lines = re.sub(r"use_when:\n(  - .*\n)+", "use_when: Somebody wants tea.\n", GOOD)
    read = parse_template(lines.replace("\n", "\r\n"), "tea.md", "user")
    assert read.use_when == ("Somebody wants tea.",)
    assert read.lines() == ["Choose a tea. Somebody wants tea."]


def test_a_written_template_reads_back_unchanged() -> None:
    odd = template(title="Tea: which?", use_when=("- a dash", "a: colon", "“quotes” # hash"))
    assert parse_template(odd.as_file(), "x", "user") == odd


# --- the user's own ---


def test_a_users_template_is_used_and_can_be_removed(home: Path) -> None:
    path = add_template(template(), home)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    found = load_library(home).find("tea-choice")
    assert found == template()
    remove_template("tea-choice", home)
    assert load_library(home).find("tea-choice") is None


def test_of_several_templates_all_are_added_or_none(home: Path) -> None:
    coffee = template(id="coffee-choice")
    (user_folder(home) / "coffee-choice.md").mkdir(parents=True)
    with pytest.raises(BadInput, match=r"coffee-choice\.md exists but is invalid"):
        add_templates([template(), coffee], home)
    assert load_library(home).find("tea-choice") is None


def test_two_templates_with_one_id_are_refused(home: Path) -> None:
    add_template(template(), home)
    with pytest.raises(BadInput, match="'tea-choice' is already used by a user template"):
        add_template(template(title="Another"), home)
    with pytest.raises(BadInput, match="'root-cause' is already used by a shipped template"):
        add_template(template(id="root-cause"), home)
    assert load_library(home).find("tea-choice") == template()


def test_files_added_by_hand_are_used_or_reported(home: Path) -> None:
    folder = templates.user_folder(home)
    folder.mkdir(parents=True)
    (folder / "a.md").write_text(GOOD)
    (folder / "b.md").write_text(GOOD)
    (folder / "c.md").write_text("no template")
    found = load_library(home)
    assert found.find("tea-choice") == template()
    twin, broken = found.problems
    assert re.search(r"b\.md has the id 'tea-choice', which is already used by .*a\.md", twin)
    assert "c.md has no front matter" in broken


@pytest.mark.parametrize("text", [GOOD.replace("tea-choice", "of-mine"), "half a template"])
def test_never_overwrites_a_user_file(home: Path, text: str) -> None:
    folder = user_folder(home)
    folder.mkdir(parents=True)
    (folder / "tea-choice.md").write_text(text)
    with pytest.raises(BadInput, match=r"tea-choice\.md exists but is invalid"):
        add_template(template(), home)
    assert (folder / "tea-choice.md").read_text() == text
    assert keep_candidate(template(), home).name == "tea-choice-2.md"


def test_removes_by_id_before_file_name(home: Path) -> None:
    folder = user_folder(home)
    folder.mkdir(parents=True)
    (folder / "tea-choice.md").write_text(GOOD.replace("tea-choice", "of-mine"))
    (folder / "zebra.md").write_text(GOOD)
    assert remove_template("tea-choice", home).name == "zebra.md"
    assert remove_template("tea-choice", home).name == "tea-choice.md"


def test_refuses_to_remove_shipped_and_unknown_templates(home: Path) -> None:
    with pytest.raises(BadInput, match="'root-cause' is built in"):
        remove_template("root-cause", home)
    with pytest.raises(BadInput, match="No template has the id 'nothing'"):
        remove_template("nothing", home)


def test_a_broken_file_can_be_removed_by_its_name(home: Path) -> None:
    folder = templates.user_folder(home)
    folder.mkdir(parents=True)
    (folder / "broken.md").write_text("no template")
    remove_template("broken", home)
    assert load_library(home).problems == ()


def test_the_fingerprint_changes_with_the_users_files(home: Path) -> None:
    before = fingerprint(home)
    add_template(template(), home)
    assert fingerprint(home) != before


# --- candidates ---


def test_a_candidate_is_used_only_after_it_is_accepted(home: Path) -> None:
    keep_candidate(template(), home)
    assert load_library(home).find("tea-choice") is None
    (waiting,) = load_candidates(home).templates
    assert waiting.origin == "candidate"
    accept_candidate("tea-choice", home)
    found = load_library(home).find("tea-choice")
    assert found is not None
    assert found.origin == "user"
    assert load_candidates(home).templates == ()


def test_a_candidate_can_be_renamed_before_it_is_accepted(home: Path) -> None:
    path = keep_candidate(template(), home)
    path.write_text(GOOD.replace("tea-choice", "better-name"))
    assert accept_candidate("better-name", home).name == "better-name.md"
    assert not path.exists()


def test_a_candidate_never_takes_an_id_that_is_used(home: Path) -> None:
    for _ in range(2):
        keep_candidate(template(id="root-cause"), home)
    assert [each.id for each in load_candidates(home).templates] == ["root-cause-2", "root-cause-3"]
    remove_template("root-cause-2", home)
    assert [each.id for each in load_candidates(home).templates] == ["root-cause-3"]


def test_a_long_id_leaves_room_for_its_number(home: Path) -> None:
    for _ in range(2):
        keep_candidate(template(id="x" * 60), home)
    assert {each.id for each in load_candidates(home).templates} == {"x" * 54, "x" * 54 + "-2"}


def test_refuses_to_accept_an_unknown_candidate(home: Path) -> None:
    with pytest.raises(BadInput, match=r"No candidate has the id '\.\./secret'"):
        accept_candidate("../secret", home)


# --- lint ---


def test_advice_names_what_is_missing() -> None:
    poor = template(body="## Steps\n1. One.\n\n## Errors\n- Some.", use_when=("Once.",))
    said = " | ".join(lint_template(poor))
    assert "exactly the headings '## Steps', '## Checks', '## Typical errors'" in said
    assert "'Steps' has 1 of at least 3 items" in said
    assert "'Checks' has 0 of at least 2 items" in said
    assert "words; aim for 80 to 400" in said
    assert "fewer than 3 lines" in said
