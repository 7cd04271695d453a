import asyncio
import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

from contend.graph.phases import PHASES
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import DebateSettings, data_home
from contend.graph.state import DebateState, Turn
from contend.graph.values import QuoteCheck, Seat
from contend.models.embeddings import Embedder, EmbeddingFailed
from contend.nodes.prompting.prompt import Material
from contend.retrieval.documents import Passage, load_corpus
from contend.retrieval.images import load_images
from contend.retrieval.passages import DocumentAccess, find_passages

_MOST_QUERIES, _MOST_REMARKS = 12, 3
_FIRST_PARTS = ("first", "opening")
_PARAGRAPH = re.compile(r"\n\s*\n")
_SHORTEST_CLAIM = 5


async def gather_evidence(
    state: DebateState, settings: DebateSettings, seat: Seat, part: str
) -> tuple[Material, list[str]]:
    passages, trouble = await _passages(state, settings, seat)
    images = [each for each in state.get("images", []) if strategy_for(settings).sees(seat, each)]
    images = images if part in _FIRST_PARTS else []
    pictures = await asyncio.to_thread(load_images, images, data_home())
    return Material(passages, pictures), trouble


def document_access(state: DebateState, settings: DebateSettings, seat: Seat) -> DocumentAccess:
    documents = tuple(state.get("documents", []))
    return DocumentAccess(
        documents, tuple(each for each in documents if strategy_for(settings).sees(seat, each))
    )


async def _passages(
    state: DebateState, settings: DebateSettings, seat: Seat
) -> tuple[tuple[Passage, ...], list[str]]:
    documents_access = document_access(state, settings, seat)
    if not documents_access.documents:
        return (), []
    # Index the documents for the quote check now, so that any error comes before the paid call.
    corpus = await asyncio.to_thread(load_corpus, documents_access.documents, data_home())
    await asyncio.to_thread(_check_quotes, "", corpus, [])
    embedder = Embedder(state["retrieval"].embedding_model, settings)
    try:
        return await find_passages(
            documents_access, search_queries(state), embedder, settings.passages
        ), []
    except EmbeddingFailed as failed:
        return (), [str(failed)]


def search_queries(state: DebateState) -> list[str]:
    """Return the texts to search for, such as the question and the latest claims."""
    if "cue" in state and state["cue"].about:
        return list(state["cue"].about)[:_MOST_QUERIES]
    turns = state.get("turns", [])
    remarks = [turn.text for turn in turns if turn.phase == "remark"][-_MOST_REMARKS:]
    said = [turn for turn in turns if turn.phase != "remark"]
    at_once = [t for t in said if (t.round, t.phase) == (said[-1].round, said[-1].phase)]
    # Take the first claim of each parallel turn, then the second, so that no speaker is left out.
    in_turn = zip_longest(*(_claims(turn.text) for turn in at_once))
    claims = [claim for together in in_turn for claim in together if claim]
    return [state["question"], *remarks, *claims][:_MOST_QUERIES]


def _claims(text: str) -> list[str]:
    return [part for part in _PARAGRAPH.split(text) if len(part.split()) >= _SHORTEST_CLAIM]


async def with_quotes_checked(state: DebateState, turn: Turn) -> Turn:
    documents = state.get("documents", [])
    if not documents or not PHASES[turn.phase].has_checked_quotes:
        return turn
    corpus = await asyncio.to_thread(load_corpus, tuple(documents), data_home())
    disproved = [
        quote.text
        for each in state.get("turns", [])
        for quote in each.quotes
        if quote.status == "not_found"
    ]
    quotes = await asyncio.to_thread(
        _check_quotes, turn.text, corpus, _shown(state, turn.seat), disproved
    )
    return turn.model_copy(update={"quotes": quotes})


def _check_quotes(*given: Any) -> tuple[QuoteCheck, ...]:
    from contend.retrieval.quotes.check import check_quotes  # slow to import

    return check_quotes(*given)


def _shown(state: DebateState, speaker: str) -> list[str]:
    """Return all texts that a speaker may quote, except documents."""
    turns = state.get("turns", [])
    given = [state["question"], state.get("request"), [seat.position for seat in state["seats"]]]
    said = [turn.text for turn in turns]
    noted = [t.assessment.model_dump() for t in turns if t.assessment and t.seat != speaker]
    return list(dict.fromkeys(_texts([given, said, noted])))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)
