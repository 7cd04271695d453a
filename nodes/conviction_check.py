"""Ask every active seat whether another has convinced it; eliminate seats that concede."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import ModelFailed
from contend.graph.events import node_event
from contend.graph.protocols.base import strategy_for
from contend.graph.readings import Conviction
from contend.graph.settings import DebateSettings, ForumSettings
from contend.graph.state import DebateState, Elimination, Turn, seat_with_id
from contend.graph.values import Degradation, Seat, WorkSpan
from contend.models.replies.conviction import (
    Claim,
    ConvictionBlock,
    ShortConvictionBlock,
    claim_from_block,
    claim_from_report,
    claim_from_words,
    named_seat,
)
from contend.nodes.calls.decide import Decided, Reader, decide_calls
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import lost_call, publish_turn
from contend.nodes.forum.concessions import count_concessions, is_supported, staying
from contend.nodes.forum.prompt_values import others_who_answered
from contend.nodes.prompting.answers import label_of
from contend.nodes.prompting.values import turns_in_history
from contend.nodes.rounds import still_active
from contend.retrieval.quotes.check import was_said

_READER: Reader[ConvictionBlock, Claim] = Reader(
    form=ConvictionBlock,
    short_form=ShortConvictionBlock,
    from_block=claim_from_block,
    from_words=claim_from_words,
    from_report=claim_from_report,
)


@dataclass(frozen=True)
class _Answer:
    """A seat's answer; empty if it could not speak or be parsed."""

    turn: Turn | None = None
    conviction: Conviction | None = None
    degraded: tuple[Degradation, ...] = ()
    lost: tuple[WorkSpan, ...] = ()

    @property
    def concedes_to(self) -> str | None:
        return self.conviction.convinced_by if self.conviction else None

    @property
    def rests_on_something(self) -> bool:
        return self.conviction is not None and is_supported(self.conviction)


async def conviction_check(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    settings: ForumSettings = runtime.context
    active = still_active(state, settings)
    first = await _ask(state, runtime, active, "conviction")
    doubted = [
        seat
        for seat, answer in first.items()
        if settings.verify_concessions and answer.concedes_to and not answer.rests_on_something
    ]
    said = [answer.turn for answer in first.values() if answer.turn]
    seen: DebateState = {**state, "turns": [*state["turns"], *said]}
    again = await _ask(seen, runtime, doubted, "conviction_again")
    withdrawn = [
        _withdrawal(state, runtime, seat, first[seat], again[seat])
        for seat in doubted
        if again[seat].concedes_to != first[seat].concedes_to
    ]
    upheld = {
        seat: answer.conviction
        for seat, answer in (first | again).items()
        if answer.conviction and answer.concedes_to == first[seat].concedes_to is not None
    }
    conceded = {seat: str(upheld[seat].convinced_by) for seat in active if seat in upheld}
    kept = _kept(state, runtime, conceded, active)
    gone = [_elimination(state, seat, upheld[seat]) for seat in conceded if seat not in kept]
    remaining = [seat for seat in active if seat not in {each.seat for each in gone}]
    _send_events(runtime, state, gone, remaining)
    answers = [*first.values(), *again.values()]
    problems = [entry for answer in answers for entry in answer.degraded]
    return {
        "turns": [answer.turn for answer in answers if answer.turn],
        "degraded": [*problems, *withdrawn, *kept.values()],
        "spans": [span for answer in answers for span in answer.lost],
        "eliminations": gone,
        "active": remaining,
    }


async def _ask(
    state: DebateState, runtime: Runtime[Any], ids: Sequence[str], part: str
) -> dict[str, _Answer]:
    seats = [seat_with_id(state, seat) for seat in ids]
    calls = [(state, seat) for seat in seats]
    decided = await decide_calls(calls, runtime, "conviction_check", part, _READER)
    return {
        seat.id: _not_asked(state, runtime, seat, each)
        if isinstance(each, ModelFailed)
        else _answer(state, runtime, seat, each)
        for seat, each in zip(seats, decided, strict=True)
    }


def _answer(
    state: DebateState, runtime: Runtime[Any], seat: Seat, decided: Decided[Claim]
) -> _Answer:
    claim = decided.read
    conviction = _conviction(state, runtime.context, seat, claim) if claim else None
    turn = decided.turn.model_copy(update={"assessment": conviction})
    publish_turn(runtime, turn)
    degraded = list(decided.degraded)
    if claim is None:
        why = "could not parse whether it concedes, so it stays"
        degraded.append(report_problem(runtime, seat, state["round"], "unreadable", why))
    elif conviction and conviction.convinced and conviction.convinced_by is None:
        named = " ".join(claim.named.split()) or "nobody by name"
        why = f"it concedes to {named}: no other active seat that has spoken, so it stays"
        degraded.append(report_problem(runtime, seat, state["round"], "void_concession", why))
    return _Answer(turn, conviction, tuple(degraded))


def _not_asked(
    state: DebateState, runtime: Runtime[Any], seat: Seat, failure: ModelFailed
) -> _Answer:
    reported = report_problem(runtime, seat, state["round"], "not_asked", f"{failure}; it stays")
    return _Answer(degraded=(*failure.before, reported), lost=(lost_call(failure),))


def _withdrawal(
    state: DebateState, runtime: Runtime[Any], seat: str, first: _Answer, again: _Answer
) -> Degradation:
    whom = seat_with_id(state, str(first.concedes_to)).name
    asked = "asked for its reasons, it" if again.turn else "it could not be asked for reasons and"
    why = f"{asked} did not repeat that it concedes to {whom}, so it stays"
    return report_problem(
        runtime, seat_with_id(state, seat), state["round"], "concession_withdrawn", why
    )


def _conviction(
    state: DebateState, settings: DebateSettings, seat: Seat, claim: Claim
) -> Conviction:
    whom = _conceded_to(state, settings, seat, claim)
    said = [turn.text for turn in turns_in_history(state) if turn.seat == whom]
    return Conviction(
        convinced=claim.convinced,
        convinced_by=whom,
        argument=claim.argument,
        quote=claim.quote,
        quote_found=was_said(claim.quote, said),
        reasoning=claim.reasoning,
        read_from=claim.read_from,
    )


def _conceded_to(
    state: DebateState, settings: DebateSettings, seat: Seat, claim: Claim
) -> str | None:
    others = others_who_answered(state, settings, seat.id)
    named = named_seat(claim.named, _names(state, settings, others)) if claim.convinced else None
    return named if named in others else None


def _names(state: DebateState, settings: DebateSettings, others: Sequence[str]) -> dict[str, str]:
    """Map every possible name of a seat to its id, the most reliable names last.

    All seats are included, so that part of one name is not mistaken for another. A model's name
    counts only if exactly one of the others has it.
    """
    seats = [seat for seat in state["seats"] if strategy_for(settings).answers(seat)]
    known = _model_names([seat for seat in seats if seat.id in others])
    known |= {each.id: each.id for each in seats}
    known |= {each.name: each.id for each in seats}
    return known | {label_of(state, settings, each.id): each.id for each in seats}


def _model_names(seats: Sequence[Seat]) -> dict[str, str]:
    named = [(name, s.id) for s in seats for name in (s.model, s.model.partition(":")[2])]
    names = [name for name, _ in named]
    return {name: seat for name, seat in named if names.count(name) == 1}


def _kept(
    state: DebateState, runtime: Runtime[Any], conceded: Mapping[str, str], active: Sequence[str]
) -> dict[str, Degradation]:
    reported = {}
    for seat, rule in staying(conceded, active, count_concessions(state)).items():
        whom = seat_with_id(state, conceded[seat]).name
        why = f"it concedes to {whom}, but one of those who concede must stay, and {rule}"
        kept = seat_with_id(state, seat)
        reported[seat] = report_problem(runtime, kept, state["round"], "void_concession", why)
    return reported


def _elimination(state: DebateState, seat: str, said: Conviction) -> Elimination:
    fields = said.model_dump(exclude={"kind", "convinced", "read_from"})
    return Elimination(seat=seat, round=state["round"], **fields)


def _send_events(
    runtime: Runtime[Any], state: DebateState, gone: Sequence[Elimination], remaining: list[str]
) -> None:
    number = state["round"]
    for each in gone:
        about = each.model_dump(exclude={"round", "reasoning"})
        runtime.stream_writer(node_event("model_eliminated", number, each.reasoning, **about))
    left = [each.seat for each in gone]
    runtime.stream_writer(
        node_event("convergence_status", number, eliminated=left, remaining=remaining)
    )
