import re
from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import BUDGET, ModelFailed
from contend.graph.events import node_event
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState, Turn, ids_with_role, seat_with_id
from contend.graph.values import NO_USAGE, Seat
from contend.nodes.calls.results import (
    CallResults,
    failure_results,
    join_results,
    turn_results,
    update_of,
    with_turns,
)
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import (
    next_turn_id,
    pause_if_asked,
    publish_turn,
    substitute_turn,
    take_turn_once,
)
from contend.nodes.forum.concessions import most_conceded_to
from contend.nodes.prompting.answers import answers_of, latest_answers, most_shared
from contend.nodes.rounds import still_active
from contend.nodes.timing import steady_now

_BETWEEN_PARAGRAPHS = re.compile(r"\n\s*\n")


async def synthesize(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    role = strategy_for(runtime.context).writer_role
    update = await _write(state, runtime, role) if role else {"turns": [_index(state)]}
    answer = update["turns"][-1]
    publish_turn(runtime, answer)
    about = {"model": answer.model, "status": answer.status}
    runtime.stream_writer(node_event("final_complete", state["round"], answer.text, **about))
    return update | {"final_answer": answer.text}


async def _write(state: DebateState, runtime: Runtime[Any], role: str) -> dict[str, Any]:
    settings: DebateSettings = runtime.context
    seat = _writer(state, settings, role)
    gives_verdict = strategy_for(settings).gives_verdict
    review = await _give_verdict(state, runtime, seat) if gives_verdict else join_results([])
    if review["turns"]:
        pause_if_asked(runtime)
    about = {"model": seat.model, "role": seat.role, "seat": seat.id}
    runtime.stream_writer(node_event("synthesis_start", state["round"], **about))
    answer = await _write_answer(with_turns(state, review["turns"]), runtime, seat)
    return update_of(join_results([review, answer]))


def _writer(state: DebateState, settings: DebateSettings, role: str) -> Seat:
    seats = ids_with_role(state, role)
    in_debate = [seat for seat in seats if seat in still_active(state, settings)]
    # A seat that never spoke has no position, and would probably fail to write too.
    spoke = [seat for seat in in_debate if answers_of(state, seat)]
    return seat_with_id(state, most_conceded_to(state, spoke or in_debate or seats))


async def _give_verdict(state: DebateState, runtime: Runtime[Any], seat: Seat) -> CallResults:
    try:
        spoken = await take_turn_once(state, runtime, seat, "verdict", "verdict")
    except ModelFailed as failure:
        reported = report_problem(runtime, seat, state["round"], "no_verdict", str(failure))
        return failure_results(failure, reported)
    publish_turn(runtime, spoken["turn"])
    return turn_results(spoken["turn"], spoken["degraded"])


async def _write_answer(state: DebateState, runtime: Runtime[Any], seat: Seat) -> CallResults:
    try:
        spoken = await take_turn_once(state, runtime, seat, "synthesize", "final")
    except ModelFailed as failure:
        keeps = strategy_for(runtime.context).when_a_seat_fails == "keep_answer"
        if failure.kind == BUDGET or not keeps:
            raise
        return _use_latest_answer(state, runtime, seat, failure)
    return turn_results(spoken["turn"], spoken["degraded"])


def _use_latest_answer(
    state: DebateState, runtime: Runtime[Any], writer: Seat, failure: ModelFailed
) -> CallResults:
    best = most_shared(latest_answers(state))
    name = seat_with_id(state, best.seat).name
    why = (
        f"{failure}; this is {name}'s latest answer, the one that shares most words with the others"
    )
    reported = report_problem(runtime, writer, state["round"], "not_merged", why)
    turn = substitute_turn(state, "synthesize", failure, best, "kept_previous")
    return turn_results(turn, [*failure.before, reported])


def _index(state: DebateState) -> Turn:
    now = steady_now()
    spoke = [seat for seat in state["seats"] if answers_of(state, seat.id)]
    positions = [_position(state, seat) for seat in spoke]
    return Turn(
        id=next_turn_id(state, "synthesize", "index"),
        round=state["round"],
        phase="synthesize",
        seat="index",
        role="index",
        model="",
        text="\n\n".join(["# Positions", *positions]),
        usage=NO_USAGE,
        started_at=now,
        ended_at=now,
    )


def _position(state: DebateState, seat: Seat) -> str:
    turns = answers_of(state, seat.id)
    paragraphs = _BETWEEN_PARAGRAPHS.split(turns[-1].text.strip())
    # A heading does not state the position.
    opening = next((each for each in paragraphs if not each.startswith("#")), paragraphs[0])
    where = ", ".join(turn.id for turn in turns)
    return (
        f"## {seat.name} ({turns[-1].model})\n\n{opening}\n\n"
        f"The whole of it: round {turns[-1].round}. All turns: {where}."
    )
