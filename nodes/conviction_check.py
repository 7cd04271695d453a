"""Asks all active seats whether another seat convinced them, and eliminates conceding seats."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.runtime import Runtime

from contend.graph.errors import ModelFailed
from contend.graph.events import node_event
from contend.graph.protocols.base import strategy_for
from contend.graph.readings import Conviction, Reading
from contend.graph.settings import DebateSettings, ForumSettings
from contend.graph.state import DebateState, Elimination, Turn, seat_with_id
from contend.graph.values import Degradation, Seat
from contend.models.replies.conviction import (
    Claim,
    ConvictionBlock,
    ShortConvictionBlock,
    claim_from_block,
    claim_from_report,
    claim_from_text,
    named_seat,
)
from contend.nodes.calls.decide import Decided, Reader, decide_calls
from contend.nodes.calls.results import (
    CallResults,
    failure_results,
    join_results,
    turn_results,
    update_of,
    with_turns,
)
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import publish_turn
from contend.nodes.forum.concessions import (
    count_concessions,
    is_supported,
    seats_that_stay,
    upheld_concession,
)
from contend.nodes.forum.prompt_values import others_who_answered
from contend.nodes.prompting.answers import label_of
from contend.nodes.prompting.values import turns_in_history
from contend.nodes.rounds import still_active

_READER: Reader[ConvictionBlock, Claim] = Reader(
    form=ConvictionBlock,
    short_form=ShortConvictionBlock,
    from_block=claim_from_block,
    from_words=claim_from_text,
    from_report=claim_from_report,
    for_people="Has another debater convinced you? Begin with NOT CONVINCED: and your reason, or "
    "with CONVINCED: NAME and the argument that convinced you.",
)


async def conviction_check(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    if state.get("stop"):
        return {}
    settings: ForumSettings = runtime.context
    active, verify = still_active(state, settings), settings.verify_concessions
    first = await _ask(state, runtime, active, "conviction")
    doubted = [turn for turn in first["turns"] if verify and _lacks_support(turn)]
    seen = with_turns(state, first["turns"])
    again = await _ask(seen, runtime, [turn.seat for turn in doubted], "conviction_again")
    answers = {
        seat: [turn.assessment for turn in first["turns"] + again["turns"] if turn.seat == seat]
        for seat in active
    }
    upheld = {seat: upheld_concession(said, verify=verify) for seat, said in answers.items()}
    conceded = {seat: whom for seat, whom in upheld.items() if whom is not None}
    asked_again = {turn.seat for turn in again["turns"]}
    withdrawn = [
        _report_withdrawal(state, runtime, turn, answered=turn.seat in asked_again)
        for turn in doubted
        if turn.seat not in conceded
    ]
    kept = _report_kept(state, runtime, conceded, active)
    gone = [_elimination(state, seat, answers[seat][-1]) for seat in conceded if seat not in kept]
    remaining = [seat for seat in active if seat not in {each.seat for each in gone}]
    _send_events(runtime, state, gone, remaining)
    joined = join_results([first, again])
    joined["degraded"] += [*withdrawn, *kept.values()]
    return {**update_of(joined), "eliminations": gone, "active": remaining}


async def _ask(
    state: DebateState, runtime: Runtime[Any], ids: Sequence[str], part: str
) -> CallResults:
    seats = [seat_with_id(state, seat) for seat in ids]
    calls = [(state, seat) for seat in seats]
    decided = await decide_calls(calls, runtime, "conviction_check", part, _READER)
    return join_results(
        _answer(state, runtime, seat, each) for seat, each in zip(seats, decided, strict=True)
    )


def _answer(
    state: DebateState, runtime: Runtime[Any], seat: Seat, decided: Decided[Claim] | ModelFailed
) -> CallResults:
    def problem(what: str, why: str) -> Degradation:
        return report_problem(runtime, seat, state["round"], what, why)

    if isinstance(decided, ModelFailed):
        return failure_results(decided, problem("not_asked", f"{decided}; it stays"))
    claim = decided.read
    conviction = _conviction(state, runtime.context, seat, claim) if claim else None
    turn = decided.turn.model_copy(update={"assessment": conviction})
    publish_turn(runtime, turn)
    degraded = list(decided.degraded)
    if claim is None:
        why = "could not parse whether it concedes, so it stays"
        degraded.append(problem("unreadable", why))
    elif conviction and conviction.convinced and conviction.convinced_by is None:
        named = " ".join(claim.named.split()) or "nobody by name"
        why = f"it concedes to {named}: no other active seat that has spoken, so it stays"
        degraded.append(problem("void_concession", why))
    return turn_results(turn, degraded)


def _lacks_support(turn: Turn) -> bool:
    said = turn.assessment
    return isinstance(said, Conviction) and bool(said.convinced_by) and not is_supported(said)


def _report_withdrawal(
    state: DebateState, runtime: Runtime[Any], turn: Turn, *, answered: bool
) -> Degradation:
    seat, conviction = seat_with_id(state, turn.seat), cast("Conviction", turn.assessment)
    whom = seat_with_id(state, str(conviction.convinced_by)).name
    asked = "asked for its reasons, it" if answered else "it could not be asked for reasons and"
    why = f"{asked} did not repeat that it concedes to {whom}, so it stays"
    return report_problem(runtime, seat, state["round"], "concession_withdrawn", why)


def _conviction(
    state: DebateState, settings: DebateSettings, seat: Seat, claim: Claim
) -> Conviction:
    from contend.retrieval.quotes.check import was_said  # slow to import

    others = others_who_answered(state, settings, seat.id)
    named = named_seat(claim.named, _names(state, settings, others)) if claim.convinced else None
    whom = named if named in others else None
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


def _names(state: DebateState, settings: DebateSettings, others: Sequence[str]) -> dict[str, str]:
    """Map each seat's possible names to the seat's id. Labels win over names, ids and models."""
    # All seats are included, so that part of one name is not mistaken for another name. A model's
    # name counts only if exactly one of the other seats uses the model.
    seats = [seat for seat in state["seats"] if strategy_for(settings).answers(seat)]
    known = _model_names([seat for seat in seats if seat.id in others])
    known |= {each.id: each.id for each in seats}
    known |= {each.name: each.id for each in seats}
    return known | {label_of(state, settings, each.id): each.id for each in seats}


def _model_names(seats: Sequence[Seat]) -> dict[str, str]:
    named = [(name, s.id) for s in seats for name in (s.model, s.model.partition(":")[2])]
    names = [name for name, _ in named]
    return {name: seat for name, seat in named if names.count(name) == 1}


def _report_kept(
    state: DebateState, runtime: Runtime[Any], conceded: Mapping[str, str], active: Sequence[str]
) -> dict[str, Degradation]:
    reported = {}
    for seat, rule in seats_that_stay(conceded, active, count_concessions(state)).items():
        whom = seat_with_id(state, conceded[seat]).name
        why = f"it concedes to {whom}, but one of those who concede must stay, and {rule}"
        kept = seat_with_id(state, seat)
        reported[seat] = report_problem(runtime, kept, state["round"], "void_concession", why)
    return reported


def _elimination(state: DebateState, seat: str, said: Reading | None) -> Elimination:
    fields = cast("Conviction", said).model_dump(exclude={"kind", "convinced", "read_from"})
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
