"""Phase 0: seat the speakers if nobody did, and find reasoning templates for the question."""

from datetime import UTC, datetime
from typing import Any

from langgraph.runtime import Runtime
from pydantic import TypeAdapter, ValidationError

from graph.errors import BadInput
from graph.events import node_event
from graph.settings import MAX_QUESTION_CHARS, DebateSettings
from graph.state import DebateState, Retrieval, Seat
from models.seating import choose_seats, preflight
from models.text import clean
from retrieval.library import find_templates

_SEATS = TypeAdapter(list[Seat])


async def retrieve(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    """Open the debate: question, seats, templates, round 1."""
    if state.get("turns"):
        raise BadInput("This thread holds a debate already; ask a new question in a new thread.")
    question = checked_question(state.get("question", ""))
    seats = await _seats(state.get("seats"), runtime.context, question)
    started = datetime.now(UTC)
    found = await find_templates()
    retrieval = Retrieval(
        templates=found.templates,
        embedding_model=runtime.context.embedding_model,
        started_at=started,
        ended_at=datetime.now(UTC),
    )
    runtime.stream_writer(
        node_event("rag_complete", None, found.notice, templates=[t.id for t in found.templates])
    )
    runtime.stream_writer(node_event("round_start", 1))
    return {"question": question, "seats": seats, "retrieval": retrieval, "round": 1}


def checked_question(question: str) -> str:
    """The question as it will be asked, or BadInput."""
    if not isinstance(question, str):  # a server's client may send anything
        raise BadInput("The question must be text.")
    cleaned = clean(question)
    if not cleaned.strip():
        raise BadInput("The question is empty.")
    if len(cleaned) > MAX_QUESTION_CHARS:
        raise BadInput(
            f"The question has {len(cleaned):,} characters; the limit is {MAX_QUESTION_CHARS:,}."
        )
    return cleaned


async def _seats(given: Any, settings: DebateSettings, question: str) -> list[Seat]:
    """The seats the runner has laid and checked; else those of a bare start, checked here."""
    if given and all(isinstance(seat, Seat) for seat in given):
        return list(given)
    try:
        seats = _SEATS.validate_python(given or [])
    except ValidationError as error:
        raise BadInput(
            "The seats are not well-formed; leave them out to have them laid."
        ) from error
    seats = seats or (await choose_seats(settings)).seats
    await preflight(seats, settings, question)
    return seats
