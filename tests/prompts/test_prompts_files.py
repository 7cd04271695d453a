"""Every prompt file is used and contains only known placeholders."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from contend import prompts
from contend.graph.settings import FORMATS, SETTINGS, DebateSettings
from contend.graph.state import seat_with_role
from contend.nodes.prompting.values import PromptContent, prompt_name
from tests.support.floor import moderated_settings
from tests.support.forecasting import forecast_settings
from tests.support.scripted import THREAD, forum_settings, refine_settings, scripted_settings
from tests.support.states import state

FOLDER = Path(prompts.__file__).parent
NAMES = sorted(str(p.relative_to(FOLDER).with_suffix("")) for p in FOLDER.rglob("*.md"))
# The parts each role is asked to play; nodes name them where they speak.
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "adversarial": {
        "proposer": ("first", "again"),
        "skeptic": ("first", "again"),
        "synthesizer": ("final",),
        "judge": ("score",),
    },
    "forum": {
        "debater": ("first", "again", "conviction", "conviction_again", "final"),
        "judge": ("continue", "verdict", "final", "score"),
    },
    "moderated": {
        "moderator": ("positions", "request", "summary", "end", "final"),
        "position_advocate": ("opening", "argument", "rebuttal", "closing", "correction"),
        "fact_checker": ("claims", "check"),
        "judge": ("stage",),
    },
    "refine": {"debater": ("first", "again"), "judge": ("feedback", "final", "score")},
    "forecast": {
        "optimist": (),
        "pessimist": (),
        "contrarian": (),
        "historian": ("precedents",),
        "own_role": (),
        "judge": ("opening", "rebuttal", "score", "scores", "final"),
        # Parts that all roles share; there is no role of this name.
        "all": ("opening", "rebuttal", "closing", "stronger", "numbers", "references"),
    },
}
STYLES = ("free_discussion", "structured_opposition", "iterative_improvement")
# Prompts that nodes.prompting fills by themselves, and what it fills in.
SHARED = {
    "shared/data": {"mark"},
    "shared/extract": {"speech", "known_points"},
    "shared/small/extract": {"speech"},
    "shared/passages": {"passages"},
    "shared/quotes": {"quotes"},
    "shared/control.score": {"nonce"},
    "shared/feedback": set(),
    "shared/tools": {"count", "tools", "mark"},
    "shared/tools.spent": set(),
    "shared/learn": {"data_rule", "question", "points", "final_answer"},
    "forecast/data": {"mark"},
    "forecast/outcomes": {"question", "data_short", "today"},
    "forecast/small/outcomes": {"question"},
    "forecast/control.argument": {"nonce", "probability_slots", "more_slots"},
    "forecast/control.score": {"nonce", "score_slots"},
    "forecast/control.verdict": {"nonce", "probability_slots"},
    "moderated/stress.formal": {"report"},
    "moderated/stress.competitive": {"report"},
    "moderated/adjust.extend": {"most_rounds"},
    "moderated/adjust.cut": {"rounds_left"},
    "moderated/control.ruling": {"nonce", "breach_ids"},
    "moderated/control.ruling_adjust": {"nonce", "change", "breach_ids"},
    "moderated/ruling": {"statement_by", "breaches"},
}
FLOOR_BLOCKS = ("ruling", "positions", "rebuttal", "claims", "check", "stage")
FLOOR_REPORTS = ("positions", "claims", "check", "stage")


def known_to(name: str) -> set[str]:
    if name in SHARED:
        return SHARED[name]
    if name == "adversarial/control.critique":
        return {"nonce", "early_stop_score"}
    if "/control." in name:
        return {"nonce"}
    if "/extract." in name:
        return {"speech"}
    of_protocol: dict[str, Callable[[], DebateSettings]] = {
        "moderated": moderated_settings,
        "forecast": forecast_settings,
        "forum": forum_settings,
        "refine": refine_settings,
    }
    settings = of_protocol.get(name.partition("/")[0], scripted_settings)()
    seat = seat_with_role(state(), "proposer")
    return set(PromptContent(state(), settings, seat, "first", THREAD, "tag").values([]))


@pytest.mark.parametrize("name", NAMES)
def test_every_placeholder_is_one_the_renderer_knows(name: str) -> None:
    assert prompts.placeholders(prompts.load(name)) <= known_to(name)


# Parts in which a speaker answers the question, so that it must know what the user added.
ANSWERS = ("first", "again", "opening", "argument", "rebuttal", "closing")


@pytest.mark.parametrize(
    "name", ["adversarial/judge.score", "shared/judge.score", "shared/small/judge.score"]
)
def test_prompts_that_rate_the_answer_include_user_comments(name: str) -> None:
    before, remarks, after = prompts.load(name).partition("{remarks}")
    assert remarks
    assert "{question}" in before
    assert "{final_answer}" in after


@pytest.mark.parametrize("name", [name for name in NAMES if name.rpartition(".")[2] in ANSWERS])
def test_prompts_that_answer_the_question_include_user_comments(name: str) -> None:
    is_task = name.startswith("forum/") and "debater" not in name
    if not is_task and "/control." not in name:
        assert "remarks" in prompts.placeholders(prompts.load(name))


@pytest.mark.parametrize("name", [name for name in NAMES if "{templates}" in prompts.load(name)])
def test_templates_come_after_the_question(name: str) -> None:
    before = prompts.load(name).partition("{templates}")[0]
    assert prompts.placeholders(before) & {"question", "situation"}


def test_prompts_for_small_models_refer_only_to_included_parts() -> None:
    again = prompts.placeholders(prompts.load("refine/small/debater.again"))
    # Feedback names answers by their letters; and there may be none.
    assert {"own_label", "feedback_heading"} <= again
    assert "excerpt_rule" in prompts.placeholders(prompts.load("refine/small/judge.feedback"))
    # A concession without a quote is asked about again, in words that presuppose the first request.
    assert "quote the words" in prompts.load("forum/small/debater.conviction")


@pytest.mark.parametrize("name", NAMES)
def test_every_brace_is_a_placeholder_or_belongs_to_the_json_form(name: str) -> None:
    text = re.sub(r"```json\n.*?```", "", prompts.load(name), flags=re.DOTALL)
    assert not re.sub(r"\{[a-z_]+\}", "", text).count("{")


def test_every_prompt_file_is_used_and_every_used_one_exists() -> None:
    used = {*SHARED, *(f"{protocol}/system" for protocol in SETTINGS)}
    used |= {"adversarial/control.critique", "adversarial/control.first"}
    used |= {"forum/control.conviction", "forum/control.continue"}
    used |= {"forum/small/extract.conviction", "forum/small/extract.continue"}
    used |= {"shared/small/extract.score"}
    used |= {f"forum/{style}.{part}" for style in STYLES for part in ("first", "again")}
    used |= {f"moderated/control.{name}" for name in FLOOR_BLOCKS}
    used |= {f"moderated/small/extract.{name}" for name in FLOOR_REPORTS}
    used |= {f"moderated/{what}.{name}" for what in ("tone", "rules", "stress") for name in FORMATS}
    for protocol in SETTINGS:
        for role, parts in PARTS[protocol].items():
            for folder in (protocol, f"{protocol}/small"):
                used |= {prompt_name(folder, role, part) for part in parts}
                used |= {f"{folder}/{role}"} if role != "all" else set()
    assert set(NAMES) == used
