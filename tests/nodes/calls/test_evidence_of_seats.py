"""Documents and images of single seats: who sees them, and quote checks for all."""

from pathlib import Path
from typing import Any

import pytest

from contend.debates.attachments import read_attachments
from contend.graph.errors import BadInput
from contend.graph.settings import RefineSettings, SeatFiles, data_home
from contend.graph.values import Document, Image
from contend.retrieval.documents import save_corpus
from contend.retrieval.images import save_images
from tests.nodes.calls.test_evidence import PIXEL, pictures_in
from tests.support.scripted import Cast, Played, play, refine_settings, refining_cast

QUESTION = "May tenants keep dogs?"
CONTRACT = "Pets need the written consent of the landlord in every case."
MINUTES = "The owners voted in May that dogs are tolerated in the garden."
LETTER = "Our neighbour keeps a dog and nobody ever complained about it."


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {"contract": CONTRACT, "minutes": MINUTES, "letter": LETTER}
    for name, text in texts.items():
        (tmp_path / f"{name}.txt").write_text(text)
    (tmp_path / "dog.png").write_bytes(PIXEL)
    return {path.stem: path for path in tmp_path.iterdir() if path.is_file()}


def brought(
    files: dict[str, Path], for_all: list[str], **own: list[str]
) -> tuple[list[Document], list[Image]]:
    """Read and store files as the command does; `dog` is the only image."""

    def paths(names: list[str], *, images: bool) -> list[Path]:
        return [files[name] for name in names if (name == "dog") is images]

    of_seats = {
        seat: SeatFiles(
            tuple(str(path) for path in paths(names, images=False)),
            tuple(str(path) for path in paths(names, images=True)),
        )
        for seat, names in own.items()
    }
    given = read_attachments(paths(for_all, images=False), paths(for_all, images=True), of_seats)
    save_corpus(given.loaded, data_home())
    save_images(given.pictures, data_home())
    return given.documents, given.images


async def debate(
    documents: list[Document] = [],  # noqa: B006 - never changed
    images: list[Image] = [],  # noqa: B006
    cast: Cast | None = None,
    **changes: Any,
) -> Played:
    given = {"question": QUESTION, "documents": documents, "images": images}
    settings = refine_settings(max_debate_rounds=1, **changes)
    return await play(cast or refining_cast(), given, settings=settings)


def shown_to(played: Played, model: str) -> set[str]:
    texts = " ".join(sent.user for sent in played.cast.sent_to(model))
    return {name for name in ("contract", "minutes", "letter") if f"[{name}:1]\n" in texts}


async def test_a_seat_sees_its_own_documents_and_the_shared_ones(files: dict[str, Path]) -> None:
    documents, _ = brought(files, ["contract"], ann=["minutes"], ben=["letter"])
    played = await debate(documents)
    assert shown_to(played, "ann") == {"contract", "minutes"}
    assert shown_to(played, "ben") == {"contract", "letter"}
    assert shown_to(played, "cyd") == {"contract"}
    by_seat = {turn.seat: set(turn.passages) for turn in played.turns if turn.phase == "propose"}
    assert by_seat["cyd"] == {"contract:1"}
    kept = {each["id"]: list(each["seats"]) for each in played.state["trace"]["documents"]}
    assert kept == {"contract": [], "minutes": ["ann"], "letter": ["ben"]}


async def test_hidden_passages_do_not_use_up_the_passage_limit(files: dict[str, Path]) -> None:
    """With one passage per turn, one that Ben may not see must not use it up."""
    documents, _ = brought(files, [], ann=["contract", "minutes"], ben=["letter"])
    played = await debate(documents, passages=1)
    assert shown_to(played, "ben") == {"letter"}
    assert shown_to(played, "cyd") == set()
    assert "Rules for the documents" not in played.cast.sent_to("cyd")[0].user


async def test_the_judge_sees_all_documents(files: dict[str, Path]) -> None:
    documents, _ = brought(files, [], ann=["minutes"], ben=["letter"])
    assert shown_to(await debate(documents), "judge") == {"minutes", "letter"}


async def test_a_quote_from_a_private_document_is_checked_for_all(files: dict[str, Path]) -> None:
    documents, _ = brought(files, [], ann=["minutes"])
    cast = refining_cast(
        ann=f'It says "{MINUTES}" [minutes:1].',
        ben='It says "dogs are banned for ever" [minutes:1].',
    )
    played = await debate(documents, cast=cast)
    checked = {turn.seat: turn.quotes[0].status for turn in played.turns if turn.quotes}
    assert checked == {"ann": "found", "ben": "not_found"}
    assert "FOUND at [minutes:1] (Answer A, round 0)" in cast.sent_to("cyd")[1].user


async def test_an_image_is_shown_only_to_its_seat(files: dict[str, Path]) -> None:
    _, images = brought(files, [], ben=["dog"])
    played = await debate(images=images)
    seeing = [
        sent.model
        for sent in played.cast.sent
        if not isinstance(sent.messages[1].content, str) and pictures_in(sent.messages[1])
    ]
    assert seeing == ["ben"]


async def test_only_seats_with_images_need_image_support(files: dict[str, Path]) -> None:
    _, images = brought(files, [], ben=["dog"])
    blind = {"name": "Cyd", "model": "scripted:blind"}
    seats = [{"name": "Ben", "model": "scripted:ben"}, blind]
    assert (await debate(images=images, cast=refining_cast(blind="Yes."), seats=seats)).turns
    with pytest.raises(
        BadInput, match=r"Ben's model scripted:blind does not accept images\. Give it no images"
    ):
        await debate(images=images, seats=[blind | {"name": "Ben"}, blind])


def test_a_file_given_to_several_seats_is_stored_once(files: dict[str, Path]) -> None:
    documents, images = brought(files, [], ann=["minutes", "dog"], ben=["minutes", "dog"])
    assert [(each.id, each.seats) for each in documents] == [("minutes", ("ann", "ben"))]
    assert [(each.name, each.seats) for each in images] == [("dog.png", ("ann", "ben"))]


def test_a_shared_file_stays_shared_if_a_seat_also_has_it(files: dict[str, Path]) -> None:
    documents, images = brought(files, ["minutes", "dog"], ann=["minutes", "dog"])
    assert (documents[0].seats, images[0].seats) == ((), ())


def test_recognizes_the_same_content_in_another_seats_folder(
    tmp_path: Path, files: dict[str, Path]
) -> None:
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "other.txt").write_text(LETTER)
    folder, file = str(tmp_path / "copy"), str(files["letter"])
    given = read_attachments([], [], {"ann": SeatFiles((folder,)), "ben": SeatFiles((file,))})
    (one,) = given.documents
    assert (one.name, one.seats) == ("copy/other.txt", ("ann", "ben"))
    assert given.notices == ("letter.txt has the same content as copy/other.txt.",)


def test_names_every_bad_file_of_every_seat(tmp_path: Path) -> None:
    own = {"ann": SeatFiles(("gone.txt",), ("gone.png",)), "ben": SeatFiles(("no.pdf",))}
    with pytest.raises(BadInput) as refusal:
        read_attachments([tmp_path / "none.md"], [], own)
    for name in ("gone.txt", "gone.png", "no.pdf", "none.md"):
        assert name in str(refusal.value)


def test_limits_images_to_ten_per_seat(tmp_path: Path) -> None:
    paths = []
    for number in range(20):
        paths.append(str(tmp_path / f"{number}.png"))
        Path(paths[-1]).write_bytes(PIXEL + bytes([number]))
    ten = {"ann": SeatFiles(images=tuple(paths[:10])), "ben": SeatFiles(images=tuple(paths[10:]))}
    assert len(read_attachments([], [], ten).images) == 20
    with pytest.raises(BadInput, match="11 images were given; the limit is 10 per seat"):
        read_attachments([], [Path(paths[0])], ten)


# --- a graph that a server starts ---


@pytest.mark.parametrize("own", [{"docs": ["a.txt"]}, {"images": ["a.png"]}])
async def test_a_server_does_not_read_file_paths(own: dict[str, Any]) -> None:
    seats = [{"name": "Ann", "model": "scripted:ann", **own}, {"name": "B", "model": "scripted:b"}]
    cast = refining_cast()
    with pytest.raises(BadInput, match="a server cannot read its clients' files"):
        await debate(cast=cast, seats=seats)
    assert cast.sent == []


async def test_a_server_accepts_stored_documents_for_single_seats(files: dict[str, Path]) -> None:
    documents, _ = brought(files, [], ann=["minutes"])
    sent: Any = [each.model_dump(mode="json") for each in documents]
    assert shown_to(await debate(sent), "ben") == set()
    for_a_stranger = [sent[0] | {"seats": ["dan"]}]
    with pytest.raises(BadInput, match=r"minutes.txt is for the seat 'dan', but the debate"):
        await debate(for_a_stranger)


def test_files_are_listed_by_seat_id() -> None:
    settings = RefineSettings.model_validate(
        {
            "seats": [
                {"name": "The Economist", "model": "m", "docs": ["a.txt"], "images": ["b.png"]},
                {"name": "Ben", "model": "m"},
            ]
        }
    )
    assert settings.files_of_seats() == {"the-economist": SeatFiles(("a.txt",), ("b.png",))}
