"""Running, resuming and scoring evaluation arms on scripted models."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contend.evals.arms import ARMS, ArmContext, Plan, arm_of
from contend.evals.items import Item
from contend.evals.run import DataItem, EvalOptions, EvalRun, check_arms, load_items
from contend.evals.run_store import EvalResult, RunStore
from contend.graph.errors import BadInput
from contend.graph.settings import ForecastSettings
from contend.graph.values import Usage
from tests.support.scripted import Cast, Sent, judging, refine_settings, refining_cast

CHOICE = Item(id="c1", question="Which?", kind="choice", options=("One", "Two"), answer="B")
OTHER = Item(id="c2", question="What?", kind="choice", options=("One", "Two"), answer="A")
NUMBER = Item(id="n1", question="How many?", kind="number", answer="4")
OPEN = Item(id="o1", question="Why?", kind="open", rubric=("Says why", "Says how"))


def _plans(**changes: Any) -> dict[str, Plan]:
    settings = refine_settings(**changes)
    return {"refine": Plan(settings, settings.build_seats())}


def _says(*answers: str) -> Callable[[Sent], str]:
    """Return a script that gives the answers in turn and repeats the last one."""
    left = list(answers)
    return lambda _: f"I think.\n\nAnswer: {left.pop(0) if len(left) > 1 else left[0]}"


async def _run(
    folder: Path, cast: Cast, *items: Item, arms: tuple[str, ...], parallel: int = 2, **more: Any
) -> dict[tuple[str, str], EvalResult]:
    options = EvalOptions(arms=arms, data=("test",), **more)
    store = RunStore(folder)
    with store.locked(), cast.on_stage():
        store.open(options.identity())
        run = EvalRun(store, options, _plans())
        await run.run([DataItem("test", item) for item in items], parallel)
    return {(item.removeprefix("test/"), arm): each for (item, arm), each in store.results.items()}


async def test_the_single_arm_makes_one_call(tmp_path: Path) -> None:
    cast = refining_cast(ann=_says("B"))
    found = (await _run(tmp_path, cast, CHOICE, arms=("single",)))["c1", "single"]
    assert (found.status, found.answer, found.right, found.calls) == ("done", "B", True, 1)
    assert (found.input_tokens, found.output_tokens, found.cost_usd) == (10, 5, None)
    assert len(cast.sent) == 1
    assert (
        "Which?\n\nA. One\nB. Two\n\nEnd your reply with one line: `Answer: X`" in cast.sent[0].user
    )


async def test_self_consistency_takes_a_majority_vote(tmp_path: Path) -> None:
    cast = refining_cast(ann=_says("A", "B", "B"))
    found = await _run(tmp_path, cast, CHOICE, arms=("self_consistency",), samples=3)
    each = found["c1", "self_consistency"]
    assert (each.answer, each.right, each.calls, each.vote_right) == ("B", True, 3, True)
    assert [draft.right for draft in each.drafts] == [False, True, True]
    assert all(sent.options and sent.options.temperature == 0.7 for sent in cast.sent)


async def test_panel_vote_asks_different_models(tmp_path: Path) -> None:
    cast = refining_cast(ann=_says("A"), ben=_says("B"), cyd=_says("B"))
    each = (await _run(tmp_path, cast, CHOICE, arms=("panel_vote",)))["c1", "panel_vote"]
    assert (each.answer, each.calls) == ("B", 3)
    assert [sent.model for sent in cast.sent] == ["ann", "ben", "cyd"]


async def test_a_tied_vote_gives_no_answer(tmp_path: Path) -> None:
    cast = refining_cast(ann=_says("A", "B"))
    found = await _run(tmp_path, cast, CHOICE, arms=("self_consistency",), samples=2)
    each = found["c1", "self_consistency"]
    assert (each.answer, each.right, each.is_unreadable) == (None, False, True)


async def test_self_refine_corrects_the_first_answer(tmp_path: Path) -> None:
    cast = refining_cast(ann=["Answer: A", "Count again.", "Answer: B"])
    each = (await _run(tmp_path, cast, CHOICE, arms=("self_refine",)))["c1", "self_refine"]
    assert (each.answer, each.right, each.vote_right, each.calls) == ("B", True, False, 3)
    assert "Count again." in cast.sent[-1].text


async def test_the_gated_arm_skips_the_debate_if_drafts_agree(tmp_path: Path) -> None:
    def cast() -> Cast:
        return refining_cast(
            ann=_says("B"), ben=_says("B"), cyd=_says("B"), judge=judging(merge="Answer: A")
        )

    found = await _run(tmp_path, cast(), CHOICE, arms=("refine", "gated"), parallel=1)
    debated, gated = found["c1", "refine"], found["c1", "gated"]
    assert (debated.calls, debated.debated, debated.stop_reason) == (13, True, "max_rounds")
    assert (gated.calls, gated.debated, gated.stop_reason) == (5, False, "drafts_agree")
    assert (debated.answer, debated.vote, debated.vote_right) == ("A", "B", True)
    assert [draft.seat for draft in debated.drafts] == ["ann", "ben", "cyd"]


async def test_forecast_is_not_applicable_without_outcomes(tmp_path: Path) -> None:
    cast, settings = refining_cast(), ForecastSettings()
    plans = _plans() | {"forecast": Plan(settings, settings.build_seats())}
    store, options = RunStore(tmp_path), EvalOptions(arms=("forecast",), data=("test",))
    with store.locked(), cast.on_stage():
        store.open(options.identity())
        await EvalRun(store, options, plans).run([DataItem("test", NUMBER)], 1)
    each = store.results["test/n1", "forecast"]
    assert (each.status, each.right, each.calls) == ("not_applicable", None, 0)
    assert cast.sent == []


async def test_failed_runs_are_retried_and_not_counted_as_wrong(
    tmp_path: Path,
) -> None:
    def moody(sent: Sent) -> str:
        if "What?" in sent.user:
            raise RuntimeError("the model is down")
        return "Answer: B"

    found = await _run(tmp_path, refining_cast(ann=moody), CHOICE, OTHER, arms=("single",))
    assert found["c1", "single"].right is True
    failed = found["c2", "single"]
    assert (failed.status, failed.right, failed.answer) == ("failed", None, None)
    assert failed.error is not None
    assert "the model is down" in failed.error
    assert failed.failed_calls == 1
    # The next run asks again for what failed, and for nothing else.
    cast = refining_cast(ann=_says("A"))
    found = await _run(tmp_path, cast, CHOICE, OTHER, arms=("single",))
    assert found["c2", "single"].right is True
    assert found["c2", "single"].calls == 2  # the failed one was paid too
    assert len(cast.sent) == 1


async def test_a_killed_run_resumes_and_pays_no_call_twice(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    def dies(sent: Sent) -> str:
        if len([each for each in first.sent if each.model == "judge"]) == 2:
            raise Killed
        return judging(merge="Answer: B")(sent)

    first = refining_cast(ann=_says("B"), ben=_says("A"), cyd=_says("B"), judge=dies)
    with pytest.raises(Killed):
        await _run(tmp_path, first, CHOICE, arms=("refine",))
    # As a kill leaves it: the last line is cut off.
    with (tmp_path / "calls.jsonl").open("ab") as file:
        file.write(b'{"item": "test/c1", "ar')
    paid = len(first.sent) - 1  # the one that died has no answer
    second = refining_cast(
        ann=_says("B"), ben=_says("A"), cyd=_says("B"), judge=judging(merge="Answer: B")
    )
    each = (await _run(tmp_path, second, CHOICE, arms=("refine",)))["c1", "refine"]
    assert paid > 4
    assert (each.status, each.right) == ("done", True)
    assert len(second.sent) == 13 - paid
    assert each.calls == 13
    third = refining_cast()
    await _run(tmp_path, third, CHOICE, arms=("refine",))
    assert third.sent == []


async def test_arms_and_items_can_be_added_to_a_run(tmp_path: Path) -> None:
    await _run(tmp_path, refining_cast(ann=_says("B")), CHOICE, arms=("single",))
    cast = refining_cast(ann=_says("B"))
    arms = ("single", "self_consistency")
    found = await _run(tmp_path, cast, CHOICE, OTHER, arms=arms)
    assert len(found) == 4
    assert len(cast.sent) == 1 + 5 + 5


async def test_refuses_a_folder_of_another_run(tmp_path: Path) -> None:
    await _run(tmp_path, refining_cast(ann=_says("B")), CHOICE, arms=("single",))
    with pytest.raises(BadInput, match="other options: samples"):
        await _run(tmp_path, refining_cast(), CHOICE, arms=("single",), samples=9)
    (tmp_path / "results.jsonl").write_text('{"item": "x"}\n')
    with pytest.raises(BadInput, match="line 1 is from another release"):
        await _run(tmp_path, refining_cast(), CHOICE, arms=("single",))


async def test_every_arm_gets_the_token_budget_of_the_debate(tmp_path: Path) -> None:
    arms = ("self_consistency", "panel_vote", "self_refine", "single", "refine")
    cast = refining_cast(
        ann=_says("B"), ben=_says("B"), cyd=_says("B"), judge=judging(merge="Answer: B")
    )
    found = await _run(tmp_path, cast, CHOICE, arms=arms, equal_tokens=True)
    budget = found["c1", "refine"].tokens
    assert budget == 13 * 15
    assert found["c1", "self_consistency"].tokens == budget
    assert found["c1", "panel_vote"].calls == 12
    refined = found["c1", "self_refine"].tokens
    assert refined is not None
    assert budget - 3 * 15 <= refined <= budget
    assert found["c1", "single"].calls == 1


@pytest.mark.parametrize("arm", ["self_consistency", "panel_vote", "self_refine"])
async def test_a_stopped_run_resumes_with_the_same_token_budget(tmp_path: Path, arm: str) -> None:
    def cast() -> Cast:
        says = {name: _says("B") for name in ("ann", "ben", "cyd")}
        return refining_cast(**says, judge=judging(merge="Answer: B"))

    arms = ("refine", arm)
    unbroken = await _run(tmp_path / "whole", cast(), CHOICE, arms=arms, equal_tokens=True)
    whole = unbroken["c1", arm]
    for finished in range(whole.calls):
        stopped, again = cast(), cast()

        async def fail_then(_: Sent, stopped: Cast = stopped, last: int = 13 + finished) -> None:
            if len(stopped.sent) == last:
                raise RuntimeError("the model is down")

        stopped.before = fail_then
        folder = tmp_path / str(finished)
        broken = await _run(folder, stopped, CHOICE, arms=arms, equal_tokens=True)
        assert broken["c1", arm].status == "failed"
        continued = await _run(folder, again, CHOICE, arms=arms, equal_tokens=True)
        assert (finished, continued["c1", arm].tokens) == (finished, whole.tokens)
        assert len(again.sent) == whole.calls - finished


@pytest.mark.parametrize("arm", ["self_consistency", "panel_vote", "self_refine"])
async def test_a_run_killed_before_saving_its_result_repeats_no_call(
    tmp_path: Path, arm: str
) -> None:
    cast = refining_cast(ann=_says("B"), judge=judging(merge="Answer: B"))
    whole = await _run(tmp_path, cast, CHOICE, arms=("refine", arm), equal_tokens=True)
    rows = (tmp_path / "results.jsonl").read_text().splitlines()
    (tmp_path / "results.jsonl").write_text(f"{rows[0]}\n")
    again = refining_cast()
    found = await _run(tmp_path, again, CHOICE, arms=("refine", arm), equal_tokens=True)
    assert found["c1", arm].tokens == whole["c1", arm].tokens
    assert again.sent == []


async def test_skips_a_refine_round_that_exceeds_the_budget() -> None:
    cast = refining_cast(ann=_says("B"))

    def spent() -> Usage:
        return Usage(input_tokens=10 * len(cast.sent), output_tokens=5 * len(cast.sent))

    # The draft costs 15 tokens; a round repeats the prompt and the draft, so it may cost 45.
    context = ArmContext(_plans(), budget=15 + 44, spent=spent)
    with cast.on_stage():
        await arm_of("self_refine")(CHOICE, context)
    assert len(cast.sent) == 1


async def test_open_answers_are_scored_in_both_orders(tmp_path: Path) -> None:
    marked: list[str] = []

    def mark(sent: Sent) -> str:
        marked.append(sent.user)
        return json.dumps({"met": [True, len(marked) == 2]})

    cast = refining_cast(ann="Because of tea.", judge=mark)
    found = await _run(tmp_path, cast, OPEN, arms=("single",), judge="scripted:judge")
    each = found["o1", "single"]
    # First: says why; then, in reverse order: says how and says why.
    assert (each.rubric, each.rubric_agreement, each.right) == (0.75, 0.5, None)
    assert "1. Says why\n2. Says how" in marked[0]
    assert "1. Says how\n2. Says why" in marked[1]
    assert all("single" not in text for text in marked)
    assert each.calls == 1  # the judge's calls are not the arm's


async def test_an_incomplete_rubric_gives_no_score(tmp_path: Path) -> None:
    cast = refining_cast(ann="Because of tea.", judge='{"met": [true]}')
    found = await _run(tmp_path, cast, OPEN, arms=("single",), judge="scripted:judge")
    assert found["o1", "single"].rubric is None
    assert found["o1", "single"].rubric_error == "the judge did not mark every point"


async def test_stopping_keeps_finished_results(tmp_path: Path) -> None:
    second = asyncio.Event()

    async def wait(sent: Sent) -> None:
        if "What?" in sent.user:
            second.set()
            await asyncio.Event().wait()

    cast = refining_cast(ann=_says("B"))
    cast.before = wait
    options, store = EvalOptions(arms=("single",), data=("test",)), RunStore(tmp_path)
    with store.locked(), cast.on_stage():
        store.open(options.identity())
        run = EvalRun(store, options, _plans())
        going = asyncio.create_task(run.run([DataItem("test", CHOICE), DataItem("test", OTHER)], 1))
        await second.wait()
        run.stop()
        await going
    assert list(store.results) == [("test/c1", "single")]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"arms": ("telepathy",)}, "There is no arm 'telepathy'"),
        ({"arms": ()}, "Name at least one arm"),
        ({"arms": ("single",), "equal_tokens": True}, "one of the arms must be a protocol"),
    ],
)
def test_unknown_arms_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        check_arms(EvalOptions(data=("questions",), **options))


def test_refuses_a_run_without_items(tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    path.write_text("{\n")
    with pytest.raises(BadInput, match=r"There are no items to run\. none\.jsonl line 1: not JSON"):
        load_items(EvalOptions(arms=ARMS, data=(str(path),)))
