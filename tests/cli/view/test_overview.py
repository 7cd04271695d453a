import io

import pytest
from rich.console import Console

from contend.cli.view.overview import print_verdict
from contend.cli.view.page import Page
from contend.cli.view.theme import THEME
from contend.graph.readings import Point
from contend.nodes.prompting.points import track_points
from tests.cli.screen import debate_of
from tests.support.scripted import scripted_settings
from tests.support.states import assessed, turn

OBJECTION = "xx1 xxx2 xx3 xxxx4 xxxxxx5 xxxx6 xx7 xxxxx8"


@pytest.mark.parametrize("width", range(40, 60))
def test_the_verdict_box_keeps_every_word_beside_an_emoji(width: int) -> None:
    point = Point(id="S1", severity="critical", status="open", text=OBJECTION)
    critique = turn("critique", 1).model_copy(update={"assessment": assessed(point)})
    debate = debate_of(scripted_settings(), final_answer="Yes.")
    points = {"open": [each.model_dump() for each in track_points([critique])], "resolved": []}
    console = Console(file=io.StringIO(), width=width, theme=THEME)
    print_verdict(Page(console), debate.as_json() | {"points": points})
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert set(OBJECTION.split()) <= set(shown.replace("│", " ").split())
