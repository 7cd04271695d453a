"""Phase 0: checks the input, chooses seats, and finds reasoning templates."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from langgraph.runtime import Runtime
from pydantic import TypeAdapter, ValidationError

from contend.graph.errors import BadInput
from contend.graph.events import NodeEvent, node_event
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import MAX_QUESTION_CHARS, DebateSettings
from contend.graph.state import DebateState, is_begun
from contend.graph.values import Document, Image, Retrieval, Seat
from contend.models.recording import is_recording, recorded_retrieval
from contend.models.seats import choose_embedding, choose_seats, preflight
from contend.models.text import clean
from contend.nodes.budget import check_budget
from contend.nodes.calls.stream import report_problem
from contend.nodes.rounds import open_round
from contend.nodes.timing import steady_now
from contend.retrieval.template_search import find_templates

SECOND_QUESTION = (
    "This thread already holds a debate. Start a new thread for a new question, or leave the input "
    "empty to continue this one."
)
# A new round in the same thread would drop the first answer, its score and cost from the record.
AFTER_THE_END = (
    "This thread holds a finished debate, whose record keeps one answer. Start a new thread, or "
    "ask for another round in a fork: POST /api/v1/debates/ID/forks with another_round and say."
)
_SEATS = TypeAdapter(list[Seat])
_DOCUMENTS = TypeAdapter(list[Document])
_IMAGES = TypeAdapter(list[Image])


async def retrieve(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    if is_begun(state):
        raise BadInput(SECOND_QUESTION)
    question = checked_question(state.get("question", ""))
    strategy = strategy_for(runtime.context)
    derived = strategy.derived_input({**state, "question": question})
    state = {**state, **derived}
    strategy.check_input(state)
    attachments = _attachments(state)
    seats = await find_seats(state | attachments, runtime.context, question)
    retrieval, notice, trouble = await _search(question, runtime.context, seats)
    degraded = [report_problem(runtime, None, None, "no_templates", why) for why in trouble]
    runtime.stream_writer(retrieval_event(retrieval, notice))
    opened: DebateState = {"question": question, "seats": seats, "retrieval": retrieval}
    opened |= {"protocol": runtime.context.protocol}
    opened |= {"settings": _settings(runtime.context, seats, retrieval.embedding_model)}
    opened |= strategy.opening_state()
    first = open_round(opened, runtime, strategy.first_round)
    return {**derived, **opened, **first, **attachments, "degraded": degraded}


def _settings(settings: DebateSettings, seats: list[Seat], embedding: str) -> dict[str, Any]:
    """Return the settings with the chosen models, so that a resumed debate uses the same models."""
    chosen = settings.with_models({seat.id: seat.model for seat in seats})
    return chosen.model_copy(update={"embedding_model": embedding}).model_dump(mode="json")


async def _search(
    question: str, settings: DebateSettings, seats: list[Seat]
) -> tuple[Retrieval, str, tuple[str, ...]]:
    """Return the matching templates, a notice and any problems."""
    if recorded := recorded_retrieval():
        return recorded, "Templates: those of the recording.", ()
    started = steady_now()
    model = await choose_embedding(settings, seats)
    found = await find_templates(question, settings, model)
    retrieval = Retrieval(
        templates=found.templates,
        embedding_model=model,
        started_at=started,
        ended_at=steady_now(),
    )
    return retrieval, found.notice, found.trouble


def retrieval_event(retrieval: Retrieval, notice: str = "") -> NodeEvent:
    used = [{"id": use.id, "title": use.title, "score": use.score} for use in retrieval.templates]
    return node_event(
        "rag_complete",
        None,
        notice,
        templates=[use["id"] for use in used],
        scores=used,
        model=retrieval.embedding_model,
    )


def checked_question(question: str) -> str:
    if not isinstance(question, str):  # a client of a server may send anything
        raise BadInput("The question must be text.")
    cleaned = clean(question)
    if not cleaned.strip():
        raise BadInput("The question is empty.")
    if len(cleaned) > MAX_QUESTION_CHARS:
        raise BadInput(
            f"The question has {len(cleaned):,} characters; the limit is {MAX_QUESTION_CHARS:,}."
        )
    return cleaned


def _attachments(state: DebateState) -> DebateState:
    attachments: DebateState = {}
    try:
        if state.get("documents"):
            attachments["documents"] = _DOCUMENTS.validate_python(state["documents"])
        if state.get("images"):
            attachments["images"] = _IMAGES.validate_python(state["images"])
    except ValidationError as error:
        raise BadInput("The documents or images are not well-formed.") from error
    return attachments


async def find_seats(state: DebateState, settings: DebateSettings, question: str) -> list[Seat]:
    given: Any = state.get("seats")
    if given and is_recording():  # our own runner has checked its seats
        return list(given)
    try:
        seats = _SEATS.validate_python(given or [])
    except ValidationError as error:
        raise BadInput(
            "The seats are not well-formed. Omit them to use the seats of the settings."
        ) from error
    if settings.files_of_seats():
        raise BadInput(
            "The docs and images of seats are paths, and a server cannot read its clients' files: "
            "leave them out, or run the debate with `contend ask`."
        )
    check_cast(seats, settings)
    seats = seats or (await choose_seats(settings)).seats
    documents, images = state.get("documents", []), state.get("images", [])
    _refuse_unknown_seats([*documents, *images], seats)
    await preflight(seats, settings, question, documents=documents, images=images)
    check_budget({"question": question, "seats": seats}, settings)
    return seats


def check_cast(seats: Sequence[Seat], settings: DebateSettings) -> None:
    if not seats:
        return
    ids, roles = [seat.id for seat in seats], Counter(seat.role for seat in seats)
    if repeated := next((each for each in ids if ids.count(each) > 1), None):
        raise BadInput(f"Two seats have the id '{repeated}'.")
    wanted = Counter(seat.role for seat in settings.build_seats())
    missing = [role for role, count in wanted.items() if roles[role] < min(count, 2)]
    if missing:
        raise BadInput(
            f"The debate needs more seats; too few have the role: {', '.join(missing)}. "
            "Omit the seats to use those of the settings."
        )


def _refuse_unknown_seats(attachments: Sequence[Document | Image], seats: Sequence[Seat]) -> None:
    known = {seat.id for seat in seats}
    for each in attachments:
        if unknown := next((seat for seat in each.seats if seat not in known), None):
            raise BadInput(
                f"{each.name} is for the seat '{unknown}', but the debate has only: "
                f"{', '.join(sorted(known))}."
            )
