import asyncio
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from contend.graph.contract import InlineDocument, InlineImage
from contend.graph.errors import BadInput
from contend.graph.settings import data_home
from contend.graph.values import Value
from contend.models.files import usable_name
from contend.retrieval.documents import load_documents, save_corpus
from contend.retrieval.images import MAX_IMAGES, read_images, save_images

Read = TypeVar("Read")


async def store_uploads(given: dict[str, Any]) -> dict[str, Any]:
    documents, images = given.get("documents"), given.get("images")
    kept: dict[str, Any] = {}
    if _has_inline(documents, "text"):
        kept["documents"] = await asyncio.to_thread(_store_texts, documents)
    if _has_inline(images, "data"):
        kept["images"] = await asyncio.to_thread(_store_images, images)
    return {**given, **kept}


def _has_inline(given: Any, content: str) -> bool:
    return isinstance(given, list) and any(
        isinstance(each, dict) and content in each for each in given
    )


def _store_texts(given: Any) -> list[dict[str, Any]]:
    texts = _checked("documents", list[InlineDocument], given)
    loaded, _ = _as_files(texts, ".md", load_documents)
    save_corpus(loaded, data_home())
    return [_as_json(each.document) for each in loaded]


def _store_images(given: Any) -> list[dict[str, Any]]:
    images = _checked("images", list[InlineImage], given)
    if len(images) > MAX_IMAGES:
        raise BadInput(f"{len(images)} images were given; the limit is {MAX_IMAGES}.")
    pictures = _as_files(images, "", read_images)
    save_images(pictures, data_home())
    return [_as_json(each.image) for each in pictures]


def _checked(name: str, form: Any, given: Any) -> Any:
    try:
        return TypeAdapter(form).validate_python(given)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place = ".".join(map(str, (name, *first["loc"])))
        raise BadInput(f"{place} is not well-formed: {first['msg']}.") from error


def _as_files(
    uploads: Sequence[InlineDocument | InlineImage],
    suffix: str,
    read: Callable[[Sequence[Path]], Read],
) -> Read:
    """Pass uploads to `read` as temporary files, because it detects formats by file name."""
    with TemporaryDirectory(prefix="contend-") as folder:
        paths = [_write(Path(folder) / str(at), each, suffix) for at, each in enumerate(uploads)]
        try:
            return read(paths)
        except BadInput as error:
            shown = re.sub(re.escape(folder) + r"[/\\]\d+[/\\]", "", str(error))
            raise BadInput(shown) from error


def _write(folder: Path, upload: InlineDocument | InlineImage, suffix: str) -> Path:
    path = folder / usable_name(upload.name)
    path = path if path.suffix else path.with_name(path.name + suffix)
    folder.mkdir()
    path.write_bytes(upload.content)
    return path


def _as_json(stored: Value) -> dict[str, Any]:
    return stored.model_dump(mode="json")
