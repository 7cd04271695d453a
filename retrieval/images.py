import base64
import contextlib
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from contend.graph.errors import BadInput
from contend.graph.values import Image
from contend.models.files import read_regular, write_private_file
from contend.models.text import clean_piece

MAX_IMAGE_BYTES = 10_000_000
MAX_IMAGES = 10  # per speaker
# Identified by their first bytes, because the name may not match the content.
_KINDS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)


@dataclass(frozen=True)
class Picture:
    image: Image
    data: bytes
    given_paths: frozenset[Path] = frozenset()

    def block(self) -> dict[str, Any]:
        encoded = base64.b64encode(self.data).decode("ascii")
        return {"type": "image", "base64": encoded, "mime_type": self.image.media_type}


def read_images(paths: Sequence[Path]) -> list[Picture]:
    found: dict[str, Picture] = {}
    problems = []
    for path in dict.fromkeys(paths):
        try:
            picture = _read(path)
            twin = found.get(picture.image.sha256, picture)
            found[picture.image.sha256] = replace(twin, given_paths=twin.given_paths | {path})
        except BadInput as error:
            problems.append(str(error))
    if problems:
        raise BadInput("\n".join(problems))
    return list(found.values())


def _read(path: Path) -> Picture:
    data = read_regular(path, MAX_IMAGE_BYTES)
    media_type = next((kind for sign, kind in _KINDS if sign.match(data)), None)
    if media_type is None:
        raise BadInput(f"{path} is not a PNG, JPEG, GIF or WebP image.")
    digest = hashlib.sha256(data).hexdigest()
    return Picture(Image(name=clean_piece(path.name), sha256=digest, media_type=media_type), data)


def save_images(pictures: Sequence[Picture], home: Path) -> None:
    for picture in pictures:
        path = _path(picture.image, home)
        try:
            write_private_file(path, picture.data)
        except OSError as error:
            why = error.strerror or error
            raise BadInput(f"Cannot store the image {path}: {why}.") from error


def load_images(images: Sequence[Image], home: Path) -> tuple[Picture, ...]:
    return tuple(Picture(image, _load(image, home)) for image in images)


def _load(image: Image, home: Path) -> bytes:
    with contextlib.suppress(OSError):
        data = _path(image, home).read_bytes()
        if hashlib.sha256(data).hexdigest() == image.sha256:
            return data
    raise BadInput(f"The image {image.name} of this debate is missing from the data folder.")


def _path(image: Image, home: Path) -> Path:
    return home / "images" / Path(image.sha256).name
