"""Has the judge score every statement, and computes the totals in code."""

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import ModelFailed
from contend.graph.events import node_event
from contend.graph.readings import (
    DebateScores,
    Deduction,
    ReadFrom,
    Ruling,
    StageScores,
    StatementScores,
    TurnScore,
)
from contend.graph.settings import ModeratedSettings
from contend.graph.state import CallSubject, DebateState, Turn, seat_with_role
from contend.graph.values import Degradation, Seat
from contend.models.replies.moderated import ShortStageBlock, StageBlock, stage_from_report
from contend.nodes.calls.decide import Decided, Reader, decide_calls
from contend.nodes.calls.results import (
    CallResults,
    failure_results,
    join_results,
    turn_results,
    update_of,
)
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import publish_turn
from contend.nodes.moderated.anonymize import names_kept
from contend.nodes.moderated.schedule import sides_of, stages, statements_in, with_sides_reversed
from contend.nodes.moderated.totals import final_scores, score_side, turn_score

_OTHER_ORDER = "-other-order"
_Read = tuple[StageBlock, ReadFrom]
_Reading = tuple[CallSubject, Decided[_Read] | ModelFailed]


def _read_report(report: StageBlock, speech: str) -> _Read | None:
    stated = stage_from_report(report, speech)
    return (stated, "extraction") if stated else None


_STAGE: Reader[StageBlock, _Read] = Reader(
    form=StageBlock,
    short_form=ShortStageBlock,
    from_block=lambda block, _: (block, "block"),
    from_words=lambda _: None,
    from_report=_read_report,
)


async def score(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    settings: ModeratedSettings = runtime.context
    judge = seat_with_role(state, "judge")
    readings = await _read_stages(state, runtime, judge, _subjects(state, settings))
    not_anonymised = _report_names_kept(state, runtime, judge)
    joined = join_results(_publish(state, runtime, judge, *reading) for reading in readings)
    not_scored = _report_unscored(state, runtime, judge, readings)
    joined["degraded"] = not_anonymised + joined["degraded"] + not_scored
    verdict = _verdict(state, settings, judge, joined["turns"])
    runtime.stream_writer(_event(state, verdict))
    return {**update_of(joined), "verdict": verdict}


def _report_names_kept(state: DebateState, runtime: Runtime[Any], judge: Seat) -> list[Degradation]:
    kept = names_kept(state, sides_of(state))
    if not kept:
        return []
    names = " and ".join(f"'{name}'" for name in kept)
    why = f"the judge may see {names} in statements: also a word of the debate, so left as it is"
    return [report_problem(runtime, judge, state["round"], "not_anonymised", why)]


def _subjects(state: DebateState, settings: ModeratedSettings) -> list[CallSubject]:
    found = stages(state["turns"])
    readings = [(stage, order) for stage in found for order in range(settings.format.orders)]
    if settings.debate_format == "formal":
        # A resumed step finds calls by position, and release 0.1 made only the calls with order 0.
        readings.sort(key=itemgetter(1))
    return [
        CallSubject(
            label=f"{_stage_label(stage)}{_OTHER_ORDER * order}",
            turns=tuple(turn.id for turn in (with_sides_reversed(stage) if order else stage)),
        )
        for stage, order in readings
    ]


async def _read_stages(
    state: DebateState, runtime: Runtime[Any], judge: Seat, subjects: Sequence[CallSubject]
) -> list[_Reading]:
    readings = await _ask(state, runtime, judge, subjects)
    lacking = {
        subject: each.turn
        for subject, each in readings
        if isinstance(each, Decided)
        and each.read
        and each.read[1] == "block"
        and len(_marks(subject, each)) < len(subject.turns)
    }
    if not lacking:
        return readings
    # Include the first readings in the turns, so that the second ones get different ids.
    asked: DebateState = {**state, "turns": [*state["turns"], *lacking.values()]}
    return readings + await _ask(asked, runtime, judge, list(lacking))


async def _ask(
    state: DebateState, runtime: Runtime[Any], judge: Seat, subjects: Sequence[CallSubject]
) -> list[_Reading]:
    calls: list[tuple[DebateState, Seat]] = [
        ({**state, "cue": subject}, judge) for subject in subjects
    ]
    decided = await decide_calls(calls, runtime, "score", "stage", _STAGE)
    return list(zip(subjects, decided, strict=True))


def _marks(subject: CallSubject, decided: Decided[_Read]) -> tuple[StatementScores, ...]:
    return decided.read[0].marks(subject.turns) if decided.read else ()


def _report_unscored(
    state: DebateState, runtime: Runtime[Any], judge: Seat, readings: Sequence[_Reading]
) -> list[Degradation]:
    scored: dict[CallSubject, set[str]] = {}
    for subject, each in readings:
        if isinstance(each, Decided):
            found = {marks.turn for marks in _marks(subject, each)}
            scored[subject] = scored.get(subject, set()) | found
    return [
        report_problem(
            runtime,
            judge,
            state["round"],
            "not_scored",
            f"{subject.label}: the scores of {len(subject.turns) - len(found)} of "
            f"{len(subject.turns)} statements could not be parsed",
        )
        for subject, found in scored.items()
        if len(found) < len(subject.turns)
    ]


def _publish(
    state: DebateState,
    runtime: Runtime[Any],
    judge: Seat,
    subject: CallSubject,
    decided: Decided[_Read] | ModelFailed,
) -> CallResults:
    if isinstance(decided, ModelFailed):
        reported = report_problem(
            runtime, judge, state["round"], "not_scored", f"{subject.label}: {decided}"
        )
        return failure_results(decided, reported)
    read_from: ReadFrom = decided.read[1] if decided.read else "block"
    marks = _marks(subject, decided)
    order = int(subject.label.endswith(_OTHER_ORDER))
    stage = subject.label.removesuffix(_OTHER_ORDER)
    marking = StageScores(order=order, marks=marks, stage=stage, read_from=read_from)
    scored = next(turn.round for turn in state["turns"] if turn.id == subject.turns[0])
    turn = decided.turn.model_copy(update={"assessment": marking, "round": scored})
    publish_turn(runtime, turn)
    return turn_results(turn, decided.degraded)


def _stage_label(stage: Sequence[Turn]) -> str:
    first = stage[0]
    if first.phase in ("opening", "closing"):
        return f"{first.phase}s"
    return f"round-{first.round}"


def _verdict(
    state: DebateState, settings: ModeratedSettings, judge: Seat, marked: Sequence[Turn]
) -> DebateScores:
    said = statements_in(state["turns"])
    scores = [
        score
        for turn in said
        if (score := _score_turn(turn, state["turns"], marked, settings)) is not None
    ]
    scored = {score.turn for score in scores}
    return final_scores(
        [score_side(side, scores, settings.scoring_weights) for side in sides_of(state)],
        declares_winner=settings.format.declares_winner,
        contested_margin=settings.contested_margin,
        winner_margin=settings.winner_margin,
        unscored=[turn.id for turn in said if turn.id not in scored],
        judge_model=", ".join(dict.fromkeys(turn.model for turn in marked)) or judge.model,
    )


def _score_turn(
    turn: Turn, debate: Sequence[Turn], marked: Sequence[Turn], settings: ModeratedSettings
) -> TurnScore | None:
    given = [each.assessment for each in marked if isinstance(each.assessment, StageScores)]
    readings = {
        marking.order: marks.values
        for marking in given
        for marks in marking.marks
        if marks.turn == turn.id
    }
    if not readings:
        return None
    return turn_score(
        turn.id,
        turn.seat,
        readings,
        _deductions(turn, debate, settings),
        settings.scoring_weights,
        settings.contested_margin,
    )


def _deductions(turn: Turn, debate: Sequence[Turn], settings: ModeratedSettings) -> list[Deduction]:
    rulings = [each.assessment for each in debate if isinstance(each.assessment, Ruling)]
    over = [Deduction(rule="overlong", points=settings.overlong_deduction)] * turn.is_overlong
    return over + [
        Deduction(rule=ruling.breach, points=settings.ruling_deduction)
        for ruling in rulings
        if ruling.turn == turn.id
    ]


def _event(state: DebateState, verdict: DebateScores) -> Any:
    shown = {each.name: each.total for each in verdict.standings}
    return node_event(
        "scores",
        state["round"],
        ", ".join(f"{name} {total:.2f}" for name, total in shown.items() if total is not None),
        **verdict.model_dump(mode="json"),
    )
