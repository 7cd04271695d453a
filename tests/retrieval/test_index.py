"""The index on disk: reuse of embeddings, and rebuilding of damaged files."""

import json
import pickle
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from contend.graph.settings import AdversarialSettings
from contend.models.embeddings import Embedder
from contend.retrieval import index as indexing
from contend.retrieval.index import MANIFEST, VectorIndex, open_index
from tests.support import scripted

TEXTS = {
    "cats": "cats sleep all day",
    "dogs": "dogs bark at night",
    "rain": "rain falls in spring",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


@pytest.fixture(autouse=True)
def _forget() -> None:
    scripted.embedded.clear()


def embedder(name: str = "embed") -> Embedder:
    return Embedder(f"scripted:{name}", AdversarialSettings())


async def opened(folder: Path, texts: dict[str, str] | None = None) -> VectorIndex:
    return await open_index(folder, embedder(), texts or TEXTS, "templates")


async def nearest(index: VectorIndex, text: str, limit: int = 1) -> list[str]:
    (vector,) = await embedder().queries([text])
    return [hit.key for hit in index.search(vector, limit)]


async def test_the_nearest_text_is_found_with_its_similarity(folder: Path) -> None:
    index = await opened(folder)
    (vector,) = await embedder().queries(["cats sleep all day"])
    first, *others = index.search(vector, 10)
    assert (first.key, round(first.score, 3)) == ("cats", 1.0)
    assert sorted(hit.key for hit in others) == ["dogs", "rain"]
    assert all(hit.score < 0.5 for hit in others)


async def test_reopening_an_index_embeds_only_one_sample_text(folder: Path) -> None:
    await opened(folder)
    scripted.embedded.clear()
    again = await opened(folder)
    assert (scripted.embedded, again.embedded, again.notice) == ([TEXTS["cats"]], 0, "")
    assert await nearest(again, "dogs bark") == ["dogs"]


async def test_only_what_changed_is_embedded(folder: Path) -> None:
    await opened(folder)
    scripted.embedded.clear()
    changed = {"cats": TEXTS["cats"], "rain": "rain falls in autumn", "snow": "snow is white"}
    again = await opened(folder, changed)
    assert scripted.embedded == [TEXTS["cats"], "rain falls in autumn", "snow is white"]
    assert again.embedded == 2
    for key, text in changed.items():
        assert await nearest(again, text) == [key]
    scripted.embedded.clear()
    assert await nearest(await opened(folder, changed), "snow is white") == ["snow"]
    assert scripted.embedded == [TEXTS["cats"], "snow is white"]  # the sample and the query


async def test_one_text_under_two_keys_is_found_under_both(folder: Path) -> None:
    twins = {**TEXTS, "toms": TEXTS["cats"]}
    for _ in range(2):
        index = await opened(folder, twins)
        assert sorted(await nearest(index, TEXTS["cats"], 2)) == ["cats", "toms"]
    assert (await opened(folder, twins)).embedded == 0


async def test_writes_no_pickle_and_removes_old_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await opened(folder)
    young = await opened(folder, {"dusk": "dusk falls early"})
    assert young.embedded == 1
    assert _count(folder) == 5, "another process may still read what is young"
    monkeypatch.setattr(indexing, "_OLD", -1.0)
    await opened(folder, {"snow": "snow is white"})
    assert _count(folder) == 3
    assert _modes(folder) == {"entries": 0o600, "manifest.json": 0o600, "vectors": 0o600}
    assert _modes(folder.parent)["index"] == 0o700


def _count(folder: Path) -> int:
    return len([*folder.iterdir()])


def _modes(folder: Path) -> dict[str, int]:
    """Return the file modes by the first part of the file names."""
    return {
        path.name.partition("-")[0]: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()
    }


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)


def _file(folder: Path, kind: str) -> Path:
    return next(folder.glob(f"{kind}-*"))


class _Trap:
    """Records that it was unpickled."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return (_sprung.append, ("unpickled",))


_sprung: list[str] = []


def _pickle_in_place(folder: Path) -> None:
    _file(folder, "vectors").write_bytes(pickle.dumps(_Trap()))
    (folder / "index.pkl").write_bytes(pickle.dumps(_Trap()))


def _swap_entries(folder: Path) -> None:
    entries = _file(folder, "entries")
    lines = entries.read_text().splitlines()
    entries.write_text("\n".join(reversed(lines)) + "\n")


def _foreign(folder: Path) -> None:
    manifest = folder / MANIFEST
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps(told | {"model": "openai:other"}))


def _another_count(folder: Path) -> None:
    manifest = folder / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"count": 2}))


async def test_does_not_report_an_index_being_written_by_another_process(
    folder: Path,
) -> None:
    (folder / ".new-abc").mkdir(parents=True)
    assert (await opened(folder)).notice == ""


TAMPERINGS: dict[str, Callable[[Path], object]] = {
    "flipped vectors": lambda folder: _flip(_file(folder, "vectors")),
    "flipped entries": lambda folder: _flip(_file(folder, "entries")),
    "cut vectors": lambda folder: _file(folder, "vectors").write_bytes(b"IxFI"),
    "swapped entries": _swap_entries,
    "a pickle": _pickle_in_place,
    "no vectors": lambda folder: _file(folder, "vectors").unlink(),
    "no entries": lambda folder: _file(folder, "entries").unlink(),
    "no manifest": lambda folder: (folder / MANIFEST).unlink(),
    "no JSON": lambda folder: (folder / MANIFEST).write_text("{"),
    "binary manifest": lambda folder: (folder / MANIFEST).write_bytes(b"\xff\x00"),
    "a foreign model": _foreign,
    "another count": _another_count,
}


@pytest.mark.parametrize("tamper", TAMPERINGS.values(), ids=TAMPERINGS)
async def test_a_damaged_or_foreign_index_is_rebuilt_and_never_loaded(
    tamper: Callable[[Path], object], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await opened(folder)
    tamper(folder)
    scripted.embedded.clear()
    index = await opened(folder)
    assert scripted.embedded == list(TEXTS.values())
    assert "has been rebuilt" in index.notice
    assert _sprung == []
    assert await nearest(index, "rain falls") == ["rain"]
    again = await opened(folder)
    assert (again.embedded, again.notice) == (0, "")


async def test_does_not_reuse_vectors_of_another_complete_index(
    folder: Path, tmp_path: Path
) -> None:
    """An index copied over ours is for other texts, so none of its vectors are used."""
    await opened(folder)
    await open_index(tmp_path / "other", embedder(), {"x": "other words"}, "templates")
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "other", folder)
    scripted.embedded.clear()
    assert (await opened(folder)).embedded == len(TEXTS)


async def test_embeds_everything_again_if_the_model_changed_under_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await opened(folder)
    wide = scripted.bag_of_words
    monkeypatch.setattr(scripted, "bag_of_words", lambda text: wide(text, 64))
    index = await opened(folder, {**TEXTS, "snow": "snow is white"})
    assert index.store.index.d == 64
    assert await nearest(index, "snow is white") == ["snow"]
    # Vectors of the same length that mean something else.
    monkeypatch.setattr(scripted, "bag_of_words", lambda text: wide(text, 64)[::-1])
    index = await opened(folder)
    assert (index.embedded, "another model of the same name" in index.notice) == (3, True)
    assert await nearest(index, "dogs bark") == ["dogs"]


async def test_a_query_of_another_size_is_noticed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = await opened(folder)
    wide = scripted.bag_of_words
    monkeypatch.setattr(scripted, "bag_of_words", lambda text: wide(text, 64))
    (vector,) = await embedder().queries(["snow"])
    assert not index.fits(vector)


async def test_search_works_if_the_index_cannot_be_saved(tmp_path: Path) -> None:
    (tmp_path / "index").write_text("in the way")
    index = await opened(tmp_path / "index" / "templates")
    assert "Cannot save the index" in index.notice
    assert await nearest(index, "dogs bark") == ["dogs"]


async def test_large_indexes_use_an_hnsw_graph(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import faiss

    monkeypatch.setattr(indexing, "EXACT_UP_TO", 2)
    index = await opened(folder)
    assert isinstance(faiss.downcast_index(index.store.index), faiss.IndexHNSWFlat)
    again = await opened(folder, {**TEXTS, "snow": "snow is white"})
    assert again.embedded == 1
    for key, text in TEXTS.items():
        assert await nearest(again, text) == [key]


@pytest.mark.parametrize("exact_up_to", [100_000, 2], ids=["exact", "graph"])
async def test_a_search_restricted_to_some_texts_finds_all_of_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch, exact_up_to: int
) -> None:
    monkeypatch.setattr(indexing, "EXACT_UP_TO", exact_up_to)
    many = {f"rain {number}": f"rain on day {number}" for number in range(300)} | TEXTS
    index = await opened(folder, many)
    places = [list(many).index(key) for key in TEXTS]
    vectors = await embedder().queries(["rain on day 7", *TEXTS.values()])
    for vector in vectors:
        found = [hit.key for hit in index.search(vector, 10, places)]
        assert sorted(found) == sorted(TEXTS)
    best = [index.search(vector, 1, places)[0].key for vector in vectors[1:]]
    assert best == list(TEXTS)
    assert index.search(vectors[0], 10, []) == []
