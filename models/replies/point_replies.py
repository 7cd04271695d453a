import re
from collections.abc import Iterable

_ID = r"S\d+\b"
_IDS = re.compile(_ID)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_FENCE = re.compile(r"\s*(?:```|~~~)")
_ANSWER_HEADING = re.compile(
    r"^\s{0,3}(?:#{1,6}\s+|\*\*)(?:my |the )?revised answer\b.*$", re.IGNORECASE | re.MULTILINE
)
# List markup, emphasis, a symbol, a word such as "Point", then one or more ids.
_LEAD = re.compile(
    r"\s*(?:>\s*)?(?:[-*+•]\s+|\d{1,2}[.)]\s+|#{1,6}\s+)?[\W_]*"
    rf"(?:(?:point|objection|issue|reply|re|regarding|on|to)\W+(?:to\W+)?)?({_ID}"
    rf"(?:\W{{0,3}}(?:,|and|&|/|\+)\s*{_ID})*)",
    re.IGNORECASE,
)
_LABEL_END = re.compile(
    r"^[\s*_)\]]*(?:\([^\w()]*(?:critical|major|minor)[^\w()]*\))?[\s*_)\]:.–—-]*", re.IGNORECASE
)


def find_replies(text: str, ids: Iterable[str]) -> dict[str, str]:
    wanted, headed = set(ids), _ANSWER_HEADING.search(text)
    part = text[: headed.start()] if headed else text
    found: dict[str, list[str]] = {}
    for named, reply in _split(part):
        for point in named & wanted:
            found.setdefault(point, []).append(reply)
    if headed:
        for paragraph in re.split(r"\n\s*\n", part):
            for point in (set(_IDS.findall(paragraph)) & wanted) - found.keys():
                found[point] = [paragraph.strip()]
    return {point: "\n\n".join(filter(None, replies)) for point, replies in found.items()}


def _split(text: str) -> Iterable[tuple[set[str], str]]:
    named: set[str] = set()
    lines: list[str] = []
    in_code = False
    for line in text.splitlines():
        in_code ^= _FENCE.match(line) is not None
        lead = None if in_code else _LEAD.match(line)
        if lead or (not in_code and _HEADING.match(line)):
            if named:
                yield named, "\n".join(lines).strip()
            named = set(_IDS.findall(lead[1])) if lead else set()
            lines = [_without_label(line[lead.end() :])] if lead else []
        else:
            lines.append(line)
    if named:
        yield named, "\n".join(lines).strip()


def _without_label(rest: str) -> str:
    said = _LABEL_END.sub("", rest)
    # An odd number means that the removed label opened the first emphasis.
    return said.replace("**", "", 1) if said.count("**") % 2 else said
