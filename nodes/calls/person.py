"""Lets a person take a turn, and pauses the debate until the person answers."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import TypeAdapter

from contend.graph.phases import PHASES, PhaseName
from contend.graph.state import DebateState, Remark
from contend.graph.values import HUMAN, NO_USAGE, Seat
from contend.models.answers import Reply
from contend.models.recording import CallRequest, replay_or_record
from contend.models.retries import Answered, Listener
from contend.models.text import clean
from contend.nodes.calls.stream import TurnStream

_REPLY = TypeAdapter(Reply)
_UNREADABLE = "Your answer could not be read."


@dataclass(frozen=True)
class WrittenForm:
    """The rules for a person's turn, with functions that check and complete the text."""

    request: str = ""  # empty if any text will do
    is_readable: Callable[[str], bool] = lambda _: True
    add_signs: Callable[[str], str] = lambda text: text  # adds signs that keyboards lack


ANY_TEXT = WrittenForm()


async def ask_person(
    state: DebateState,
    runtime: Runtime[Any],
    seat: Seat,
    phase: PhaseName,
    form: WrittenForm,
) -> str:
    """Ask the person, or return the recorded answer if there is one."""
    wanted = form.request or f"Write the {PHASES[phase].label}."
    asked = {
        "round": state["round"],
        "seat": seat.id,
        "name": seat.name,
        "role": seat.role,
        "phase": phase,
        "request": wanted,
    }
    listener = TurnStream(runtime, seat, state["round"], "", phase).listener()
    request = CallRequest(HUMAN, [HumanMessage(wanted)], {})
    answered = await replay_or_record(request, listener, _REPLY, partial(_wait, asked, form))
    return answered.result.text


async def _wait(asked: dict[str, Any], form: WrittenForm, _: Listener) -> Answered[Reply]:
    # Await nothing here, so that several people are asked in seat order.
    problem = ""
    while True:
        answer = interrupt(asked | {"problem": problem}, response_schema=Remark)
        text = form.add_signs(clean(answer.say).strip())
        if text and form.is_readable(text):
            return Answered(Reply(text, usage=NO_USAGE), HUMAN, fell_back=False)
        problem = _UNREADABLE if text else ""
