"""The HTML export is complete and safe with untrusted text."""

import re

import pytest

from contend.debates.exports.html import to_page
from contend.debates.record import StoredDebate
from tests.debates.exports.test_markdown import _debate
from tests.debates.exports.test_safe_html import ATTACKS, Elements

PAGE_TAGS = {"html", "head", "meta", "title", "style", "body", "main", "header", "footer"}
OWN_TAGS = PAGE_TAGS | {"h1", "h2", "h3", "section", "article", "aside"}


def test_shows_the_answer_then_objections_then_turns() -> None:
    page = to_page(_debate())
    places = [page.index(each) for each in ("The final answer.", "No plan.", "The first answer.")]
    assert places == sorted(places)
    assert '<article class="turn seat-0"><h3>Proposer (openai:proposer)</h3>' in page
    assert "<h1>What now?</h1>" in page


def test_page_loads_no_external_resources() -> None:
    page = to_page(_debate())
    assert "default-src 'none'" in page
    assert not re.search(r"<script|<link|\bsrc=|url\(|@import", page)


@pytest.mark.parametrize("attack", ATTACKS)
def test_untrusted_text_cannot_inject_active_content(attack: str) -> None:
    written = _debate().model_dump(mode="json")
    written["question"] = attack
    written["error"] = attack
    written["state"]["final_answer"] = attack
    for seat in written["state"]["seats"]:
        seat["name"] = seat["model"] = attack.replace("\n", " ")
    for turn in written["turns"]:
        turn["text"] = turn["model"] = attack
    found = Elements(to_page(StoredDebate.model_validate(written)))
    names = {name for name, _ in found.attributes}
    assert not {name for name in names if name.startswith("on")}
    assert not names & {"src", "style", "srcset", "action", "formaction"}
    assert not {"script", "img", "iframe", "svg", "object", "link", "form"} & set(found.tags)
    for name, value in found.attributes:
        assert name != "href" or value.startswith(("http:", "https:", "mailto:"))


def test_page_uses_only_allowed_tags() -> None:
    from contend.debates.exports.safe_html import _TAGS

    assert set(Elements(to_page(_debate())).tags) <= _TAGS | OWN_TAGS
