"""Measures checkpoint bytes per turn, and the CPU time that a checkpoint takes."""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.harness import QUESTION, REPOSITORY, Result, cpu, data_home, environment

if TYPE_CHECKING:  # imports must not be measured
    from langgraph.checkpoint.base import BaseCheckpointSaver

    OpenSaver = Callable[[], AbstractAsyncContextManager[BaseCheckpointSaver[str]]]

GROWTH_LIMIT = 1.2
SIZE_LIMIT = 7.0
STEP_LIMIT = 3.0
_TURNS = (10, 50, 200)
_RUNS = 3
_SIZES = (
    "SELECT sum(length(checkpoint) + length(metadata)) FROM checkpoints",
    "SELECT sum(length(value)) FROM writes",
    "SELECT sum(length(value)) FROM checkpoint_constants",
)
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
    register_speaker()
    per_turn = {turns: _bytes_of_debate(turns) / turns / 1024 for turns in _TURNS}
    shown = ", ".join(f"{turns}: {size:.1f} KB" for turns, size in per_turn.items())
    growth = per_turn[_TURNS[-1]] / per_turn[_TURNS[1]]
    steps = [_seconds_per_step(opened) for opened in (_ours, _bare) for _ in range(_RUNS)]
    ours, bare = (1000 * min(each) for each in (steps[:_RUNS], steps[_RUNS:]))
    return [
        Result(
            f"checkpoint size per turn, {_TURNS[1]} turns of 4 KB",
            per_turn[_TURNS[1]],
            SIZE_LIMIT,
            "KB",
            f"debates of {shown}; prose, compressed",
        ),
        Result(
            f"checkpoint size per turn, {_TURNS[2]} turns over {_TURNS[1]}", growth, GROWTH_LIMIT
        ),
        Result(
            "CPU per step beyond langgraph's SQLite saver",
            ours - bare,
            STEP_LIMIT,
            "ms",
            f"{ours:.1f} ms a step with ours, {bare:.1f} ms with the bare saver",
        ),
    ]


def _bytes_of_debate(turns: int) -> int:
    with data_home() as home, environment(CONTEND_HOME=str(home)):
        spoken = asyncio.run(_run(_ours, (turns - 2) // 2))
        if spoken != turns:
            raise RuntimeError(f"the debate has {spoken} turns, not {turns}")
        with sqlite3.connect(home / "contend.db") as database:
            sizes = [database.execute(query).fetchone()[0] for query in _SIZES]
        database.close()
    return int(sum(sizes))


def _seconds_per_step(opened: "OpenSaver") -> float:
    rounds = 24
    with data_home() as home, environment(CONTEND_HOME=str(home)):
        took = cpu(partial(_run, opened, rounds))
    return took / (3 * rounds)  # propose, critique and judge_continue


def _ours() -> "AbstractAsyncContextManager[BaseCheckpointSaver[str]]":
    from contend.graph.checkpoints.saver import checkpointer

    return checkpointer()


def _bare() -> "AbstractAsyncContextManager[BaseCheckpointSaver[str]]":
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    return AsyncSqliteSaver.from_conn_string(str(Path(os.environ["CONTEND_HOME"], "bare.db")))


async def _run(opened: "OpenSaver", rounds: int) -> int:
    from contend.graph.adversarial import builder
    from contend.graph.protocols.base import strategy_for
    from contend.graph.settings import AdversarialSettings

    models = {f"{seat}_model": "bench:speaker" for seat in ("proposer", "skeptic", "synthesizer")}

    class LongSettings(AdversarialSettings):
        min_rounds: int = rounds
        max_rounds: int = rounds  # beyond the limit of fifty: 200 turns are 99 rounds

    chosen = LongSettings(**models, judge_model="bench:speaker", templates=False)
    async with opened() as saver:
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


def _speeches() -> Iterator[str]:
    files = sorted((REPOSITORY / "retrieval" / "shipped_templates").glob("*.md"))
    prose = "".join(file.read_text("utf-8") for file in files)
    size = _TEXT_BYTES - len(_SPEECH.encode())
    for start in cycle(range(0, len(prose.encode()) - size, size)):
        yield _SPEECH + prose.encode()[start : start + size].decode(errors="ignore")


def register_speaker() -> None:
    """Register a model that runs in this process, because only storage is measured."""
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, AIMessageChunk
    from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult

    from contend.models.providers.registry import Opened, Provider, register

    speeches = _speeches()

    class Speaker(BaseChatModel):
        @property
        def _llm_type(self) -> str:
            return "speaker"

        def _generate(self, *_: Any, **__: Any) -> ChatResult:
            return ChatResult(
                generations=[ChatGeneration(message=AIMessage(content=next(speeches)))]
            )

        def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
            yield ChatGenerationChunk(message=AIMessageChunk(content=next(speeches)))

        async def _astream(self, *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
            yield ChatGenerationChunk(message=AIMessageChunk(content=next(speeches)))

    async def usable(_: list[str]) -> None:
        return None

    opened = Opened(Speaker())
    register("bench", Provider(open=lambda *_: opened, check=usable, reports_finish=False))
