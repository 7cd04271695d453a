"""Measures checkpoint bytes per turn, which should not grow with the length of a debate."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from typing import Any

from benchmarks.harness import QUESTION, Result, data_home, environment

LIMIT = 1.5
_TURNS = (10, 50, 200)
_TEXT_BYTES = 4096
# Parsed both as a critique that continues the debate and as ratings.
_SPEECH = """🔴 Critical: it costs too much.

Correctness: 7
Completeness: 7
Clarity: 7
Depth: 7
Justification: sound.
Would benefit from finetune: false

"""


def results() -> list[Result]:
    """Compare the bytes per turn in the longest debate with the bytes in the shortest debate."""
    register_speaker()
    per_turn = {turns: _bytes_of_debate(turns) / turns for turns in _TURNS}
    shown = ", ".join(f"{turns}: {size / 1024:.1f} KB" for turns, size in per_turn.items())
    growth = per_turn[_TURNS[-1]] / per_turn[_TURNS[0]]
    note = f"a turn of 4 KB in a debate of {shown}"
    return [Result("checkpoint bytes per turn, 200 turns over 10", growth, LIMIT, "x", note)]


def _bytes_of_debate(turns: int) -> int:
    with data_home() as home, environment(CONTEND_HOME=str(home)):
        spoken = asyncio.run(_run((turns - 2) // 2))
        if spoken != turns:
            raise RuntimeError(f"the debate has {spoken} turns, not {turns}")
        with sqlite3.connect(home / "contend.db") as database:
            kept = "SELECT sum(length(checkpoint) + length(metadata)) FROM checkpoints"
            written = "SELECT sum(length(value)) FROM writes"
            total = sum(database.execute(query).fetchone()[0] for query in (kept, written))
        database.close()
    return int(total)


async def _run(rounds: int) -> int:
    """Run the real graph and saver without the runner; return the number of turns."""
    from contend.graph.adversarial import builder
    from contend.graph.checkpoints.saver import checkpointer
    from contend.graph.protocols.base import strategy_for
    from contend.graph.settings import AdversarialSettings

    models = {f"{seat}_model": "bench:speaker" for seat in ("proposer", "skeptic", "synthesizer")}
    chosen = AdversarialSettings(**models, judge_model="bench:speaker", templates=False)
    # model_copy skips the limit of fifty rounds; 200 turns are 99 rounds.
    chosen = chosen.model_copy(update={"min_rounds": rounds, "max_rounds": rounds})
    async with checkpointer() as saver:
        graph = builder.compile(checkpointer=saver)
        state = await graph.ainvoke(
            {"question": QUESTION},
            {
                "configurable": {"thread_id": "growing"},
                "recursion_limit": strategy_for(chosen).max_steps,
            },
            context=chosen,
            durability="sync",
        )
    return len(state["turns"])


def register_speaker() -> None:
    """Register a model that runs in this process, because only storage is measured."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

    from contend.models.providers.registry import Opened, Provider, register

    text = _SPEECH + "x" * (_TEXT_BYTES - len(_SPEECH.encode()))

    class Speaker(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "speaker"

        def _generate(self, *_: Any, **__: Any) -> ChatResult:
            return ChatResult(generations=[ChatGeneration(message=AIMessage(content=text))])

        def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
            yield ChatGenerationChunk(message=AIMessageChunk(content=text))

        async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
            yield ChatGenerationChunk(message=AIMessageChunk(content=text))

    async def usable(_: list[str]) -> None:
        return None

    opened = Opened(Speaker())
    register("bench", Provider(open=lambda *_: opened, check=usable, reports_finish=False))
