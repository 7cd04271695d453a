import contextlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from contend.graph.errors import BadInput
from contend.models.files import parse_yaml, read_regular, write_private_file
from contend.models.text import clean, clean_piece

Origin = Literal["shipped", "user", "candidate"]

HEADINGS = ("Steps", "Checks", "Typical errors")
MAX_TEMPLATE_BYTES = 64_000
# Templates that are more similar than this match the same questions.
MAX_SIMILARITY = 0.75
_FRONT = re.compile(r"\A---\n(.*?)\n---\n(.*)\Z", re.DOTALL)
_SLUG = r"^[a-z0-9]+(-[a-z0-9]+)*$"
_LONGEST_ID, _ROOM_FOR_NUMBER = 60, 54
LONGEST_TITLE, LONGEST_KIND, MOST_USES, MOST_TAGS = 80, 40, 20, 12
_ITEM = re.compile(r"^(?:\d+\.|[-*]) \S", re.MULTILINE)


def _to_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _to_one_line(value: Any) -> Any:
    """Join a string's lines; front matter may contain escaped line breaks."""
    return " ".join(clean_piece(value).split()) if isinstance(value, str) else value


Line = Annotated[str, BeforeValidator(_to_one_line), Field(min_length=3, max_length=400)]
Tag = Annotated[str, BeforeValidator(_to_one_line), Field(min_length=1, max_length=400)]


class Template(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)

    id: str = Field(pattern=_SLUG, max_length=_LONGEST_ID)
    title: Annotated[str, BeforeValidator(_to_one_line)] = Field(
        min_length=3, max_length=LONGEST_TITLE
    )
    kind: str = Field(pattern=_SLUG, max_length=LONGEST_KIND)
    use_when: Annotated[tuple[Line, ...], BeforeValidator(_to_list)] = Field(
        min_length=1, max_length=MOST_USES
    )
    tags: Annotated[tuple[Tag, ...], BeforeValidator(_to_list)] = Field(max_length=MOST_TAGS)
    body: str = Field(min_length=20)
    origin: Origin = "shipped"

    def lines(self) -> list[str]:
        """Return a line to embed for each entry of `use_when`; the first starts with the title."""
        first, *others = self.use_when
        return [f"{self.title}. {first}", *others]

    def as_file(self) -> str:
        head = self.model_dump(mode="json", exclude={"body", "origin"})
        front = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=1000)
        return f"---\n{front}---\n{self.body}\n"


@dataclass(frozen=True)
class Library:
    templates: tuple[Template, ...]
    problems: tuple[str, ...] = ()

    def find(self, template_id: str) -> Template | None:
        return next((each for each in self.templates if each.id == template_id), None)


def read_template(path: Path, origin: Origin) -> Template:
    try:
        text = read_regular(path, MAX_TEMPLATE_BYTES).decode("utf-8-sig")
    except UnicodeError as error:
        raise BadInput(f"{path} is not UTF-8 text.") from error
    return parse_template(text, str(path), origin)


def parse_template(text: str, name: str, origin: Origin) -> Template:
    parts = _FRONT.match(clean(text.replace("\r\n", "\n")))
    if parts is None:
        raise BadInput(
            f"{name} has no front matter: it must begin with a line ---, then id, title, kind, "
            "use_when and tags, then another line ---."
        )
    try:
        front = parse_yaml(parts[1], fast=True)
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # such as 2021-99-99
        raise BadInput(f"The front matter of {name} is not valid YAML.") from error
    if not isinstance(front, dict):
        raise BadInput(f"The front matter of {name} must be NAME: VALUE lines.")
    try:
        return Template.model_validate({**front, "body": parts[2], "origin": origin})
    except ValidationError as error:
        raise BadInput(f"{name}: {_first_problem(error)}") from error


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "string_pattern_mismatch":
        return f"{where} must be lower-case words joined by hyphens."
    return f"{where}: {first['msg'].lower()}."


@cache
def shipped_templates() -> tuple[Template, ...]:
    folder = files("contend.retrieval").joinpath("shipped_templates")
    found = [each for each in folder.iterdir() if each.name.endswith(".md")]
    texts = {each.name: each.read_text("utf-8") for each in found}
    return tuple(parse_template(texts[name], name, "shipped") for name in sorted(texts))


@cache
def plain_requests() -> tuple[str, ...]:
    text = files("contend.retrieval").joinpath("plain_requests.txt").read_text("utf-8")
    return tuple(line for line in text.splitlines() if line.strip())


def user_folder(home: Path) -> Path:
    return home / "templates"


def candidate_folder(home: Path) -> Path:
    return home / "templates" / "candidates"


def load_library(home: Path) -> Library:
    taken = {template.id: "a shipped template" for template in shipped_templates()}
    own = _load_folder(user_folder(home), "user", taken)
    return Library((*shipped_templates(), *own.templates), own.problems)


def load_candidates(home: Path) -> Library:
    return _load_folder(candidate_folder(home), "candidate", None)


def _load_folder(folder: Path, origin: Origin, taken: dict[str, str] | None) -> Library:
    templates: list[Template] = []
    problems: list[str] = []
    for path in _files(folder):
        try:
            template = read_template(path, origin)
        except BadInput as error:
            problems.append(str(error))
            continue
        if taken is not None and taken.setdefault(template.id, str(path)) != str(path):
            problems.append(
                f"{path} has the id '{template.id}', which is already used by {taken[template.id]}."
            )
        else:
            templates.append(template)
    return Library(tuple(templates), tuple(problems))


def fingerprint(home: Path) -> tuple[tuple[str, int, int], ...]:
    """Return a value that changes whenever the user's template files change."""
    found = []
    for file in _files(user_folder(home)):
        with contextlib.suppress(OSError):  # a broken link is reported when it is read
            stats = file.stat()
            found.append((file.name, stats.st_mtime_ns, stats.st_size))
    return tuple(found)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.md")) if folder.is_dir() else []


def add_templates(templates: Iterable[Template], home: Path) -> list[Path]:
    added: list[Path] = []
    try:
        added.extend(add_template(template, home) for template in templates)
    except BaseException:
        for path in added:
            path.unlink(missing_ok=True)
        raise
    return added


def add_template(template: Template, home: Path) -> Path:
    if other := load_library(home).find(template.id):
        raise BadInput(
            f"The id '{template.id}' is already used by a {other.origin} template: choose another"
            f"{', or remove that one first' if other.origin == 'user' else ''}."
        )
    path = user_folder(home) / f"{template.id}.md"
    if os.path.lexists(path):
        raise BadInput(
            f"{path} exists but is invalid or has another id: run `contend templates lint`, "
            f"or remove it with: contend templates remove {template.id}"
        )
    return _write(path, template.as_file())


def keep_candidate(template: Template, home: Path) -> Path:
    known = (*load_library(home).templates, *load_candidates(home).templates)
    taken = {each.id for each in known} | {path.stem for path in _own_files(home)}
    name = template.id[:_ROOM_FOR_NUMBER]
    numbered = (f"{name}-{number}" if number > 1 else name for number in count(1))
    free = next(each for each in numbered if each not in taken)
    named = template.model_copy(update={"id": free, "origin": "candidate"})
    return _write(candidate_folder(home) / f"{free}.md", named.as_file())


def accept_candidate(template_id: str, home: Path) -> Path:
    waiting = (path for path in _files(candidate_folder(home)) if _id_of(path) == template_id)
    path = next(waiting, None)
    if path is None:
        raise BadInput(
            f"No candidate has the id '{template_id}'. List them with `contend templates list`."
        )
    added = add_template(read_template(path, "candidate"), home)
    path.unlink()
    return added


def remove_template(template_id: str, home: Path) -> Path:
    own = _own_files(home)
    called = [path for path in own if _id_of(path) == template_id]
    for path in called or [path for path in own if path.stem == template_id]:
        try:
            path.unlink()
        except OSError as error:
            raise BadInput(f"Cannot remove {path}: {error.strerror or error}.") from error
        return path
    if Library(shipped_templates()).find(template_id):
        raise BadInput(f"'{template_id}' is built in and cannot be removed.")
    raise BadInput(
        f"No template has the id '{template_id}'. List them with `contend templates list`."
    )


def _own_files(home: Path) -> list[Path]:
    return [*_files(user_folder(home)), *_files(candidate_folder(home))]


def _id_of(path: Path) -> str:
    try:
        return read_template(path, "user").id
    except BadInput:
        return path.stem


def _write(path: Path, text: str) -> Path:
    try:
        write_private_file(path, text.encode())
    except OSError as error:
        raise BadInput(f"Cannot write {path}: {error.strerror or error}.") from error
    return path


def lint_template(template: Template) -> list[str]:
    found = []
    pieces = re.split(r"^## +(.+?) *$", template.body, flags=re.MULTILINE)
    parts = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    if tuple(parts) != HEADINGS:
        wanted = ", ".join(f"'## {heading}'" for heading in HEADINGS)
        found.append(f"the body must have exactly the headings {wanted}, in this order")
    for heading, least in zip(HEADINGS, (3, 2, 2), strict=True):
        if (items := len(_ITEM.findall(parts.get(heading, "")))) < least:
            found.append(f"'{heading}' has {items} of at least {least} items")
    words = len(template.body.split())
    if not 80 <= words <= 400:
        found.append(f"the body has {words} words; aim for 80 to 400")
    if len(template.use_when) < 3:
        found.append("use_when has fewer than 3 lines, so it will rarely be found")
    return found


def template_texts(templates: Iterable[Template]) -> dict[str, str]:
    return {
        f"{template.id}#{number}": line
        for template in templates
        for number, line in enumerate(template.lines())
    }
