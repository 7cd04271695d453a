"""Values of a thread are stored once, and task results until their step is finished."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, Checkpoint, empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from contend.graph.checkpoints.location import database_path
from contend.graph.checkpoints.outages import unsaved_folder
from contend.graph.checkpoints.saver import checkpointer
from contend.graph.serializer import CompactSerializer, serializer
from contend.graph.settings import data_home
from tests.support.scripted import BUILDERS, THREAD, full_cast, play, scripted_settings

CONFIG: Any = {"configurable": {"thread_id": "thread", "checkpoint_ns": ""}}
SEATS = ["a seat that never changes, with a long description of the persona", "another"]
DELTAS: dict[str, Any] = {"counters_since_delta_snapshot": {"turns": [1, 1]}}
Saver = BaseCheckpointSaver[Any]


@pytest.fixture(params=["sqlite", "postgres"])
def use_database(request: pytest.FixtureRequest) -> None:
    if request.param == "postgres":
        request.getfixturevalue("postgres_url")


def _checkpoint(**values: Any) -> Checkpoint:
    versions: Any = dict.fromkeys(values, "1")
    return {**empty_checkpoint(), "channel_values": values, "channel_versions": versions}


async def _put(saver: Saver, after: Any, metadata: Any, **values: Any) -> Any:
    made, about = _checkpoint(**values), DELTAS | metadata
    return await saver.aput(after, made, about, made["channel_versions"])


def _count(table: str) -> int:
    with closing(sqlite3.connect(data_home() / "contend.db")) as found:
        return int(found.execute(f"SELECT count(*) FROM {table}").fetchone()[0])  # noqa: S608


async def _channels_written(saver: Saver, at: Any) -> list[str]:
    found = await saver.aget_tuple(at)
    assert found
    return [channel for _, channel, _ in found.pending_writes or []]


@pytest.mark.usefixtures("use_database")
async def test_every_checkpoint_has_its_values() -> None:
    async with checkpointer() as saver:
        first = await _put(saver, CONFIG, {}, seats=SEATS, round=1)
        await _put(saver, first, {}, seats=SEATS, round=2)
        found = [each.checkpoint async for each in saver.alist(CONFIG)]
        old = await saver.aget_tuple(first)
    assert [each["channel_values"] for each in found] == [
        {"seats": SEATS, "round": 2},
        {"seats": SEATS, "round": 1},
    ]
    assert old
    assert old.checkpoint == found[1]
    assert found[0].keys() == _checkpoint().keys()


async def test_a_value_is_stored_once_until_the_thread_is_deleted() -> None:
    async with checkpointer() as saver:
        at = await _put(saver, CONFIG, {}, seats=SEATS)
        at = await _put(saver, at, {}, seats=SEATS)
        assert _count("checkpoint_constants") == 1
        await _put(saver, at, {}, seats=SEATS[::-1])
        assert _count("checkpoint_constants") == 2
        await saver.adelete_thread("thread")
    assert _count("checkpoint_constants") == 0


@pytest.mark.usefixtures("use_database")
async def test_edit_of_an_old_step_is_kept_when_the_debate_continues() -> None:
    cast, settings = full_cast(), scripted_settings(min_rounds=1, max_rounds=1)
    at: Any = {"configurable": {"thread_id": THREAD}}
    async with checkpointer() as saver:
        opening, critique = (await play(cast, saver=saver, settings=settings)).turns[:2]
        graph = BUILDERS["adversarial"].compile(checkpointer=saver)
        (old,) = [each async for each in graph.aget_state_history(at) if each.next == ("critique",)]
        edits = [
            opening.model_copy(update={"text": "Split it."}),
            critique.model_copy(update={"id": "by hand"}),
        ]
        edited = await graph.aupdate_state(old.config, {"turns": edits}, as_node="critique")
        with cast.on_stage():
            ended = await graph.ainvoke(None, edited, context=settings, durability="sync")
        stored = (await graph.aget_state(at)).values
    assert stored == ended
    assert stored["turns"][:2] == edits
    assert critique.id not in [turn.id for turn in stored["turns"]]


async def test_checkpoints_of_earlier_releases_are_read() -> None:
    made = _checkpoint(seats=SEATS, settings={"prose": "long " * 200})
    async with AsyncSqliteSaver.from_conn_string(str(database_path())) as bare:
        at = await bare.aput(CONFIG, made, {}, {})
    async with checkpointer() as saver:
        found = await saver.aget_tuple(at)
    assert found
    assert found.checkpoint == made


@pytest.mark.usefixtures("use_database")
@pytest.mark.parametrize(
    ("source", "left"), [("loop", ["turns"]), ("update", ["turns", "__return__"])]
)
async def test_task_results_are_deleted_when_their_step_is_finished(
    source: str, left: list[str]
) -> None:
    async with checkpointer() as saver:
        before = await _put(saver, CONFIG, {}, round=1)
        await saver.aput_writes(before, [("turns", "a speech")], "node")
        await saver.aput_writes(before, [("__return__", "a speech")], "call")
        assert sorted(await _channels_written(saver, before)) == ["__return__", "turns"]
        await _put(saver, before, {"source": source}, round=2)
        assert sorted(await _channels_written(saver, before)) == sorted(left)


@pytest.mark.parametrize("sentences", [50, 5000])
@pytest.mark.parametrize("make", [serializer, CompactSerializer])
def test_long_values_are_compressed(make: Callable[[], CompactSerializer], sentences: int) -> None:
    text = "A sentence that is said again and again. " * sentences
    kind, data = make().dumps_typed([text])
    assert len(data) < len(text) / 10
    assert make().loads_typed((kind, data)) == [text]
    assert make().dumps_typed(["short"])[0] == "msgpack"


async def test_results_that_earlier_releases_kept_in_files_are_saved() -> None:
    async with checkpointer() as saver:
        at = await _put(saver, CONFIG, {}, round=1)
        what = [at["configurable"], [("turns", "a speech " * 100)], "node", ""]
        for name, (kind, data) in {
            "{}.writes": ("", JsonPlusSerializer().dumps_typed(what)[1]),
            "{}.msgpack-zlib.writes": serializer().dumps_typed([*what[:2], "other", ""]),
        }.items():
            assert kind in name
            folder = unsaved_folder("thread")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / name.format(uuid4())).write_bytes(data)
        assert await _channels_written(saver, at) == ["turns", "turns"]
