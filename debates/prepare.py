import asyncio
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from contend.debates.attachments import (
    Attachments,
    check_stored_files,
    read_attachments,
    store_attachments,
)
from contend.debates.outputs import check_writable
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.graph.errors import BadInput
from contend.graph.forecast_contract.request import DebateRequest
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings, data_home
from contend.graph.state import DebateState
from contend.graph.values import Seat
from contend.models.embeddings import EMBEDDED_EMBEDDING, Embedder, EmbeddingFailed, warm_up
from contend.models.providers.weights import Progress, Weights, WeightsUnavailable, pull
from contend.models.seats import (
    SeatPlan,
    check_image_support,
    choose_seats,
    is_demonstration,
    is_small,
    missing_files,
    models_of,
    preflight,
)
from contend.nodes.budget import check_budget
from contend.nodes.retrieve import checked_question
from contend.retrieval.template_search import open_searcher


class Reporter:
    """Receives progress and notes during preparation. The methods do nothing unless overridden."""

    def note(self, text: str) -> None:
        """Report something unexpected; `text` is a full sentence."""

    def fetching(self, weights: Weights) -> AbstractContextManager[Progress]:  # noqa: ARG002
        return nullcontext(_ignore)

    def indexing(self, what: str) -> AbstractContextManager[Progress]:  # noqa: ARG002
        return nullcontext(_ignore)


def _ignore(_done: int, _total: int) -> None:
    pass


@dataclass(frozen=True)
class DebateDraft:
    question: str
    settings: DebateSettings
    attachments: Attachments


@dataclass(frozen=True)
class PreparedDebate:
    question: str
    settings: DebateSettings
    plan: SeatPlan
    attachments: Attachments = field(default_factory=Attachments)


def draft_debate(
    question: str,
    settings: DebateSettings,
    documents: Sequence[Path] = (),
    images: Sequence[Path] = (),
) -> DebateDraft:
    files = read_attachments(documents, images, settings.files_of_seats())
    return DebateDraft(checked_question(question), settings, files)


async def prepare_debate(
    draft: DebateDraft, reporter: Reporter | None = None, *, fetch: bool = True
) -> PreparedDebate:
    """Check and set up what a debate needs; download missing files only if `fetch` is set."""
    reporter = reporter or Reporter()
    plan, draft = await _plan_seats(draft)
    settings, files = draft.settings, draft.attachments
    if fetch and (settings.templates or files.documents):
        warm_up(plan.embedding_model)
    await _check_draft(draft, plan.seats, reporter, fetch=fetch)
    if fetch:
        await _prepare_search(plan.embedding_model, draft, reporter)
    with reporter.indexing("documents") as on_progress:
        notice = await store_attachments(files, settings, plan.embedding_model, on_progress)
    if notice:
        reporter.note(notice)
    return PreparedDebate(draft.question, settings, plan, files)


def waits_for_person(settings: DebateSettings, seats: Sequence[Seat]) -> bool:
    return settings.pause != "never" or any(seat.is_human for seat in seats)


async def plan_debate(draft: DebateDraft) -> PreparedDebate:
    """Choose the seats and settings, without checking whether the models can be used."""
    plan, draft = await _plan_seats(draft)
    check_budget({"question": draft.question, "seats": plan.seats}, draft.settings)
    return PreparedDebate(draft.question, draft.settings, plan, draft.attachments)


async def check_debate(draft: DebateDraft, reporter: Reporter) -> PreparedDebate:
    """Run the checks of `prepare_debate`, without downloading or storing anything."""
    plan, draft = await _plan_seats(draft)
    missing = missing_files(models_of(plan.seats))
    for weights in missing:
        megabytes = round(weights.size / 1e6)
        reporter.note(f"{weights.name} ({megabytes:,} MB) would be downloaded first.")
    here = [seat for seat in plan.seats if not missing_files(models_of([seat]))]
    await _check_draft(draft, here, reporter, fetch=False)
    return PreparedDebate(draft.question, draft.settings, plan, draft.attachments)


async def _plan_seats(draft: DebateDraft) -> tuple[SeatPlan, DebateDraft]:
    plan = await choose_seats(draft.settings)
    if is_small(plan.seats):
        draft = replace(draft, settings=draft.settings.adapted_to_small_models())
    return plan, draft


async def _check_draft(
    draft: DebateDraft, seats: list[Seat], reporter: Reporter, *, fetch: bool
) -> None:
    state: DebateState = {"question": draft.question, "seats": seats}
    state |= {"documents": draft.attachments.documents, "images": draft.attachments.images}
    await check_seats(state, draft.settings, reporter, fetch=fetch)
    if folder := strategy_for(draft.settings).folder_plan:
        await asyncio.to_thread(check_writable, folder.base)


async def prepare_resume(
    debate: StoredDebate, reporter: Reporter | None = None, settings: DebateSettings | None = None
) -> None:
    if debate.is_from_cassette or debate.server:
        return
    settings = settings or debate.settings_to_run()
    state = debate.as_state()
    await asyncio.to_thread(check_stored_files, state.get("documents", []), state.get("images", []))
    await check_seats(state, settings, reporter or Reporter(), fetch=True)


def write_debate(
    records: Repository,
    prepared: PreparedDebate,
    request: DebateRequest | None = None,
    *,
    task_id: str | None = None,
    debate_id: str | None = None,
) -> StoredDebate:
    """Store a new debate; raise TaskAccepted if the task already has an unfinished debate."""
    settings, seats = prepared.settings, prepared.plan.seats
    debate_id = debate_id or str(uuid4())
    # Name the chosen models in the settings, so that a resumed debate does not choose again.
    chosen = settings.with_models({seat.id: seat.model for seat in seats})
    chosen = chosen.model_copy(update={"embedding_model": prepared.plan.embedding_model})
    given: DebateState = {"question": prepared.question, "seats": seats}
    if prepared.attachments.documents:
        given["documents"] = prepared.attachments.documents
    if prepared.attachments.images:
        given["images"] = prepared.attachments.images
    if request:
        given["request"] = request.model_dump(mode="json")
    records.start(
        debate_id,
        settings.protocol,
        given,
        chosen.model_dump(mode="json"),
        demonstration=is_demonstration(seats),
        task_id=task_id,
    )
    return records.find(debate_id)


async def check_seats(
    state: DebateState, settings: DebateSettings, reporter: Reporter, *, fetch: bool
) -> None:
    seats = state["seats"]
    documents, images = state.get("documents", []), state.get("images", [])
    # Check before a large download, which might be useless.
    check_image_support(seats, settings, images)
    check_budget(state, settings)
    if fetch:
        await _pull_missing(models_of(seats), reporter)
    try:
        notices = await preflight(
            seats, settings, state["question"], documents=documents, images=images
        )
    except BadInput as refused:
        if needing := _seats_needing_key(str(refused), seats):
            raise BadInput(f"{refused} Needed by: {', '.join(needing)}.") from refused
        raise
    for notice in notices:
        reporter.note(notice)


def _seats_needing_key(refusal: str, seats: list[Seat]) -> list[str]:
    key, missing, _ = refusal.partition("_API_KEY is not set")
    provider = f"{key.lower()}:"
    needing = [s.name for s in seats if any(m.startswith(provider) for m in models_of([s]))]
    return needing if missing and len(needing) < len(seats) else []


async def _prepare_search(embedding_model: str, draft: DebateDraft, reporter: Reporter) -> None:
    settings, documents = draft.settings, draft.attachments.documents
    if settings.templates or documents:
        try:
            await _pull_missing([embedding_model], reporter)
        except BadInput as unavailable:
            if documents:  # a debate can run without templates, but not without its documents
                raise
            reporter.note(str(unavailable))
    if settings.templates and embedding_model == EMBEDDED_EMBEDDING:
        # Indexing takes seconds the first time, so do it now, while progress is shown.
        with reporter.indexing("templates") as on_progress, suppress(EmbeddingFailed):
            await open_searcher(Embedder(embedding_model, settings), on_progress)


async def _pull_missing(models: list[str], reporter: Reporter) -> None:
    for weights in missing_files(models):
        with reporter.fetching(weights) as on_progress:
            await _pull(weights, on_progress)


async def _pull(weights: Weights, on_progress: Progress) -> None:
    cancelled = threading.Event()

    def report(done: int, total: int) -> None:
        if cancelled.is_set():
            raise WeightsUnavailable("cancelled")
        on_progress(done, total)

    try:
        await asyncio.to_thread(pull, weights, data_home(), report)
    except asyncio.CancelledError:
        cancelled.set()
        raise
    except WeightsUnavailable as error:
        raise BadInput(str(error)) from error
