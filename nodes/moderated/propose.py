from typing import Any

from langgraph.runtime import Runtime

from contend.graph.state import CallSubject, DebateState, Step, seat_with_id
from contend.graph.values import Seat
from contend.models.replies.conviction import named_seat
from contend.models.replies.moderated import RebutsBlock
from contend.nodes.budget import ends_rounds_when_spent
from contend.nodes.calls.decide import block_of, in_words
from contend.nodes.calls.evidence import search_queries
from contend.nodes.calls.person import ANY_TEXT, WrittenForm
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.turn import TurnResult, publish_turn, take_turn
from contend.nodes.moderated.prompt_values import checks_of
from contend.nodes.moderated.schedule import statements_in


@ends_rounds_when_spent
async def propose(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    step, *rest = state["programme"]
    seat = seat_with_id(state, step.seat)
    about_step: DebateState = {**state, "cue": CallSubject(about=_about(state, step))}
    form = _rebuttal_form(state, step) if (step.phase, step.to) == ("rebuttal", None) else ANY_TEXT
    spoken = await take_turn(about_step, runtime, seat, step.phase, step.phase, form)
    answered = _answered(state, runtime, step, spoken)
    turn = in_words(runtime, spoken["turn"]).model_copy(update={"replies_to": answered})
    publish_turn(runtime, turn)
    degraded = list(spoken["degraded"])
    if step.phase == "rebuttal" and answered is None:
        why = "could not parse which argument this rebuttal answers"
        degraded.append(report_problem(runtime, seat, state["round"], "unreadable", why))
    return {"turns": [turn], "programme": rest, "degraded": degraded}


def _about(state: DebateState, step: Step) -> tuple[str, ...]:
    turns = state.get("turns", [])
    if step.phase == "correction":
        return tuple(each.claim for each in checks_of(turns)[-1].contradicted)
    said = [turn for turn in turns if turn.role != "moderator"]
    return tuple(search_queries({**state, "turns": said}))


def _rebuttal_form(state: DebateState, step: Step) -> WrittenForm:
    request = "Write the rebuttal. Begin with the name of the side you answer, such as NAME: ..."
    return WrittenForm(request, lambda text: _named_side(state, step, text) is not None)


def _named_side(state: DebateState, step: Step, text: str) -> str | None:
    return named_seat(text, {side.name: side.id for side in _others(state, step)})


def _others(state: DebateState, step: Step) -> list[Seat]:
    return [seat for seat in state["seats"] if seat.id != step.seat]


def _answered(
    state: DebateState, runtime: Runtime[Any], step: Step, spoken: TurnResult
) -> str | None:
    if step.phase == "correction":
        return statements_in(state["turns"])[-1].id
    if step.phase != "rebuttal":
        return None
    rebutted = step.to
    if rebutted is None and spoken["turn"].status == "human":
        rebutted = _named_side(state, step, spoken["turn"].text)
    elif rebutted is None and (block := block_of(runtime, spoken, RebutsBlock)):
        rebutted = block.among(_others(state, step))
    made = [t for t in state["turns"] if (t.phase, t.round) == ("argument", state["round"])]
    return next((turn.id for turn in made if turn.seat == rebutted), None)
