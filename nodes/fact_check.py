from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import ModelFailed
from contend.graph.events import node_event
from contend.graph.readings import NO_SOURCE, ClaimCheck, FactCheck
from contend.graph.state import CallSubject, DebateState, Step, Turn, seat_with_role
from contend.graph.values import NO_USAGE, Degradation, Seat
from contend.models.replies.moderated import (
    MOST_CLAIMS,
    CheckBlock,
    ClaimsBlock,
    ShortCheckBlock,
    ShortClaimsBlock,
)
from contend.nodes.calls.decide import Decided, block_reader, decide, decide_calls
from contend.nodes.calls.results import (
    CallResults,
    failure_results,
    join_results,
    turn_results,
    update_of,
)
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import publish_turn
from contend.nodes.moderated.prompt_values import claim_line
from contend.nodes.moderated.schedule import statements_in

_NOTHING = "There is nothing in this statement that could be checked."
_UNREADABLE = "its check could not be read"
_CLAIMS = block_reader(ClaimsBlock, ShortClaimsBlock)
_CHECK = block_reader(CheckBlock, ShortCheckBlock)


async def fact_check(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Check the latest statement, and schedule a correction if a claim is contradicted."""
    seat, statement = seat_with_role(state, "fact_checker"), statements_in(state["turns"])[-1]
    try:
        listed = await decide(state, runtime, seat, "fact_check", "claims", _CLAIMS)
    except ModelFailed as failure:
        return update_of(
            failure_results(failure, _report_unchecked(state, runtime, seat, str(failure)))
        )
    claims = listed.read.tidied()[:MOST_CLAIMS] if listed.read else []
    checked = await _check_claims(state, runtime, seat, statement, claims)
    joined = join_results(
        [turn_results(listed.turn, listed.degraded), *(each for _, each in checked)]
    )
    found = FactCheck(turn=statement.id, claims=tuple(claim for claim, _ in checked))
    turn = _merge(joined["turns"], found)
    publish_turn(runtime, turn)
    runtime.stream_writer(_event(turn, found))
    if listed.read is None:
        why = "the list of claims could not be read"
        joined["degraded"].append(_report_unchecked(state, runtime, seat, why))
    update = update_of({**joined, "turns": [turn]})
    if not found.contradicted:
        return update
    correction = Step(phase="correction", seat=statement.seat)
    return update | {"programme": [correction, *state["programme"]]}


def _report_unchecked(
    state: DebateState, runtime: Runtime[Any], seat: Seat, why: str
) -> Degradation:
    return report_problem(runtime, seat, state["round"], "not_checked", why)


async def _check_claims(
    state: DebateState, runtime: Runtime[Any], seat: Seat, statement: Turn, claims: list[str]
) -> list[tuple[ClaimCheck, CallResults]]:
    # Labels contain the statement's id, because nonces need a label that is unique in the round.
    labels = [f"{statement.id}.claim-{at}" for at, _ in enumerate(claims, 1)]
    subjects = [
        CallSubject(label=label, about=(claim,))
        for label, claim in zip(labels, claims, strict=True)
    ]
    calls: list[tuple[DebateState, Seat]] = [
        ({**state, "cue": subject}, seat) for subject in subjects
    ]
    decided = await decide_calls(calls, runtime, "fact_check", "check", _CHECK)
    return [
        _check_claim(state, runtime, seat, claim, each)
        for claim, each in zip(claims, decided, strict=True)
    ]


def _check_claim(
    state: DebateState,
    runtime: Runtime[Any],
    seat: Seat,
    claim: str,
    decided: Decided[CheckBlock] | ModelFailed,
) -> tuple[ClaimCheck, CallResults]:
    if isinstance(decided, ModelFailed):
        reported = _report_unchecked(state, runtime, seat, str(decided))
        return _unverified(claim, "its check failed"), failure_results(decided, reported)
    if decided.read is None:
        reported = _report_unchecked(state, runtime, seat, f"{_UNREADABLE}: {claim}")
        unread = turn_results(decided.turn, [*decided.degraded, reported])
        return _unverified(claim, _UNREADABLE), unread
    read = decided.read.of(claim, decided.turn.passages)
    return read, turn_results(decided.turn, decided.degraded)


def _unverified(claim: str, why: str) -> ClaimCheck:
    return ClaimCheck(claim=claim, verdict="unverifiable", source=NO_SOURCE, why=why)


def _merge(parts: list[Turn], found: FactCheck) -> Turn:
    lines = "\n".join(f"- {claim_line(claim)}" for claim in found.claims)
    update = {
        "text": lines or _NOTHING,
        "assessment": found,
        "replies_to": found.turn,
        "usage": sum((part.usage for part in parts), NO_USAGE),
        "ended_at": max(part.ended_at for part in parts),
        "passages": tuple(dict.fromkeys(label for part in parts for label in part.passages)),
        "quotes": (),
    }
    return parts[0].model_copy(update=update)


def _event(turn: Turn, found: FactCheck) -> Any:
    return node_event(
        "fact_check",
        turn.round,
        turn.text,
        turn=found.turn,
        claims=[claim.model_dump() for claim in found.claims],
    )
