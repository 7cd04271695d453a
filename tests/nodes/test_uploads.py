"""Documents and images uploaded as text."""

import base64
from typing import Any

import pytest

from contend.graph.errors import BadInput
from contend.graph.settings import data_home
from contend.graph.values import Document, Image
from contend.nodes.uploads import store_uploads
from contend.retrieval.documents import load_corpus
from contend.retrieval.images import load_images

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg"
    "=="
)
PLAN = {"name": "plan", "text": "The monolith stays until May."}


async def test_a_text_is_stored_and_replaced_by_its_description() -> None:
    kept = await store_uploads({"question": "Why?", "documents": [PLAN]})
    assert kept["question"] == "Why?"
    (document,) = [Document.model_validate(each) for each in kept["documents"]]
    assert (document.id, document.name) == ("plan", "plan.md")
    corpus = load_corpus((document,), data_home())
    assert [passage.text for passage in corpus.passages] == ["The monolith stays until May."]


@pytest.mark.parametrize("data", [PIXEL, f"data:image/png;base64,{PIXEL}"])
async def test_an_image_is_stored_and_replaced_by_its_description(data: str) -> None:
    kept = await store_uploads({"images": [{"name": "chart.png", "data": data}]})
    (image,) = [Image.model_validate(each) for each in kept["images"]]
    assert (image.name, image.media_type) == ("chart.png", "image/png")
    (picture,) = load_images([image], data_home())
    assert picture.data == base64.b64decode(PIXEL)


async def test_keeps_uploads_that_are_already_stored() -> None:
    given = {"question": "Why?", "documents": [{"id": "plan"}], "images": "none"}
    assert await store_uploads(given) == given


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"documents": [PLAN, {"id": "plan"}]}, r"documents\.1\.name is not well-formed"),
        ({"documents": [PLAN | {"path": "/etc/passwd"}]}, r"documents\.0\.path is not well-formed"),
        ({"documents": [{"name": "a.pdf", "text": "No PDF."}]}, r"a\.pdf"),
        ({"images": [{"name": "a.png", "data": "%"}]}, r"a\.png is not in base64"),
        ({"images": [{"name": "a.png", "data": "aaaa"}]}, r"a\.png"),
        ({"images": [{"name": "a.png", "data": PIXEL}] * 99}, "99 images were given"),
    ],
)
async def test_refuses_unreadable_uploads_without_showing_a_path(
    given: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadInput, match=says) as refused:
        await store_uploads(given)
    assert "contend-" not in str(refused.value)
