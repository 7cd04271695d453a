"""Reading the words and marks of a critique. Whatever could be meant either way is left unread."""

import re
from dataclasses import dataclass, field
from itertools import pairwise

from graph.state import Point, PointStatus, Severity

SEVERITY_MARKS: dict[str, Severity] = {"🔴": "critical", "🟡": "major", "🟢": "minor"}
STATUS_MARKS: dict[str, PointStatus] = {"✅": "resolved", "⚠": "partial", "❌": "open"}
READY_SIGNAL = "Ready for Synthesis ✅"

Found = tuple[str, Severity, PointStatus, str]

_ISSUE = r"(?:issues?|points?|problems?|flaws?|concerns?|errors?|gaps?|objections?|weakness(?:es)?)"
_STATE = r"(?:(?:partially|partly|not|un)[\s-]*)?resolved"
_ID = r"S\d+\b"
# What may stand before an objection: marks and signs, ids, the names of severities and states.
_LABEL = re.compile(
    rf"(?:[^\w\s]|[\s_]|{_ID}|(?:critical|major|minor|{_STATE})(?:\s+{_ISSUE})?(?!\w))*",
    re.IGNORECASE,
)
# A state behind the objection: `... -> ✅ RESOLVED`, `... RESOLVED ✅`, `... (⚠️)`.
_ENDING = re.compile(
    rf"(?:[-–—→>:|(=\[]\s*(?P<bare>[✅⚠❌])|(?P<mark>[✅⚠❌])\ufe0f?\W*{_STATE}|{_STATE}\W*(?P<last>[✅⚠❌]))"
    rf"\ufe0f?\W*(?:{_STATE})?\W*$",
    re.IGNORECASE,
)
_NAMED = re.compile(
    rf"\W*(critical|major|minor)(?:\s+{_ISSUE})?\W*?(?:[:–—(|]|-\s|$)", re.IGNORECASE
)
_QUALITY = r"(?:more|new|further|remaining|open|outstanding|other|critical|major|minor|unresolved)"
_LEFT = (
    r"(?:left|remain(?:s|ing)?|found|identified|detected|noted|outstanding|open|here|now|at all|"
    r"any ?more|were|was|are|is|have been|to report|(?:at|in) this (?:time|stage|point|round))"
)
_NONE = re.compile(
    rf"(?:there (?:are|is) )?(?:currently )?(?:none|nothing|n/?a|no|zero|0)(?: {_QUALITY})*"
    rf"(?: {_ISSUE})?(?: {_LEFT})*\W*"
    r"|all (?:are |have been |were )?(?:resolved|addressed|settled)\W*",
    re.IGNORECASE,
)
_MENTION = re.compile(rf"🔴|\bcritical\s+{_ISSUE}\b", re.IGNORECASE)
_DENIED = re.compile(
    rf"\b(?:no|zero|without(?: any)?)(?: {_QUALITY}| longer any)*\s+"
    rf"(?:🔴\s*)?(?:critical\s*)?{_ISSUE}?(?: {_LEFT})*\W*",
    re.IGNORECASE,
)
_SCORE = re.compile(
    r"\W*(?:(?:my|the|current|overall|final|answer|quality|new) )*score(?: now| \(1[-–]10\))?"
    r"[\s:=*_|]+(10(?:\.0+)?|[1-9](?:\.\d+)?)(?:\s*(?:/|out of|of)\s*10)?\W*",
    re.IGNORECASE,
)
_SOME_SCORE = re.compile(
    r"\d\s*(?:/|out of|of)\s*10\b|\bscore\b.*\d|\brat(?:e|ing)\b.*\d", re.IGNORECASE
)


@dataclass(frozen=True)
class Marks:
    """What the words decide."""

    ready: bool
    score: float | None
    found: list[Found]


@dataclass(frozen=True)
class _Line:
    """One line of the speaker's own, bare of Markdown's list and heading signs."""

    text: str
    heading: bool = False
    item: bool = False
    nested: bool = False


def read_marks(speech: str, known: list[Point]) -> Marks | None:
    """The words of the protocol; None when they are absent or could be meant either way.

    A ready signal counts only as the line that closes the speech. One that stands anywhere else
    may be quoted in order to reject it.
    """
    lines = _own_lines(speech)
    if not lines:
        return None
    # Both: fences that do not pair up can make a quoted line look like the speaker's own last.
    ready = _is_signal(lines[-1].text) and _is_signal(_line(speech.strip().splitlines()[-1]).text)
    signals = sum(READY_SIGNAL.casefold() in line.text.casefold() for line in lines)
    scores = {float(s.group(1)) for line in lines if (s := _SCORE.fullmatch(line.text))}
    score = scores.pop() if len(scores) == 1 else None
    vague_score = score is None and any(_SOME_SCORE.search(line.text) for line in lines)
    reading = _read(lines[:-1] if ready else lines, known)
    undecided = reading.doubt and not reading.critical_left
    if signals != int(ready) or (vague_score if ready else undecided):
        return None
    if not (ready or reading.found or reading.none_critical):
        return None
    return Marks(ready, score, reading.found)


def _is_signal(line: str) -> bool:
    bare = re.sub(r"[*_]", "", line).strip().rstrip(".!").strip()
    label, colon, rest = bare.partition(":")
    if colon and label.casefold() in ("verdict", "signal", "status", "decision"):
        bare = rest.strip()
    return bare.casefold() == READY_SIGNAL.casefold()


def _own_lines(speech: str) -> list[_Line]:
    """The speaker's own lines; quotations and code are not its own."""
    without_code = re.sub(r"```.*?(?:```|\Z)", "", speech, flags=re.DOTALL)
    written = [line for line in without_code.splitlines() if line.strip()]
    own = [line for line in written if not line.lstrip().startswith(">")]
    headers = {upper for upper, lower in pairwise(own) if _is_rule(lower)}
    return [_line(line) for line in own if line not in headers and not _is_rule(line)]


def _is_rule(line: str) -> bool:
    return re.fullmatch(r"[\s|:*_=-]+", line) is not None


def _line(written: str) -> _Line:
    bare = written.strip()
    if bare.startswith("|"):
        return _Line(_row(bare), item=True)
    sign = re.match(r"(?:[-+•–]|\*(?!\*)|\d+[.)])\s+|#{1,6}\s*", bare)
    text = bare[sign.end() :] if sign else bare
    heading = bool(sign and sign.group().startswith("#"))
    return _Line(text, heading, bool(sign) and not heading, written.startswith(("  ", "\t")))


def _row(written: str) -> str:
    """A table's row as a line: first the cells that only label it, then those with words."""
    cells = [cell.strip() for cell in written.strip("|").split("|")]
    labels = [cell for cell in cells if _LABEL.fullmatch(cell)]
    return " ".join(labels + [cell for cell in cells if not _LABEL.fullmatch(cell)])


def _read(lines: list[_Line], known: list[Point]) -> "_Reading":
    reading = _Reading({point.id: point for point in known})
    for line in lines:
        for part in _parts(line.text):
            reading.take(part, line)
    reading.leave_section()
    return reading


def _parts(text: str) -> list[str]:
    """A line with several severity marks is several lines, if each begins with its mark."""
    parts = re.split(f"(?=[{''.join(SEVERITY_MARKS)}])", text)
    if len(parts) > 2 and len(re.findall(_ID, text)) < 2:
        head, *rest = parts
        return [head, *rest] if re.search(r"\w", head) else [head + rest[0], *rest[1:]]
    return [text]


@dataclass
class _Reading:
    """Gathers points line by line; a heading's severity and state hold for the lines under it."""

    known: dict[str, Point]
    found: list[Found] = field(default_factory=list)
    none_critical: bool = False
    doubt: bool = False
    _severity: Severity | None = None
    _status: PointStatus | None = None
    _items: int | None = None

    @property
    def critical_left(self) -> bool:
        return any(s == "critical" and status != "resolved" for _, s, status, _ in self.found)

    def take(self, part: str, line: _Line) -> None:
        label = _LABEL.match(part)
        lead = label.group() if label else ""
        severity, status = _severity_of(part, lead), _status_of(part, lead)
        text = _ENDING.sub("", part[len(lead) :]).strip(" \t*_`|:–—-")[:400]
        ids = [known for known in re.findall(_ID, lead) if known in self.known]
        if severity is None and status is None and not (ids and text):
            self._take_plain(part, text, line)
        elif not text and not ids:
            self._enter(severity, status)
        elif severity and _is_count(text):
            self._count(severity, text)
        else:
            self._add(ids, severity, status, text)

    def leave_section(self) -> None:
        """A critical heading that nothing stands under might mean anything."""
        self.doubt |= self._severity == "critical" and self._items == 0
        self._severity = self._status = self._items = None

    def _enter(self, severity: Severity | None, status: PointStatus | None) -> None:
        self.leave_section()
        self._severity, self._status, self._items = severity, status, 0

    def _take_plain(self, part: str, text: str, line: _Line) -> None:
        """A line without marks: an item of the section it stands in, or prose."""
        if _MENTION.search(part):
            self._mention(part)
        elif line.heading or (self._items and re.fullmatch(r"\*\*.+\*\*|.+:\W*", part)):
            self.leave_section()
        elif self._items is None or not text or line.nested or _SCORE.fullmatch(part):
            return
        elif _is_count(text):
            self._count(self._severity, text)
        elif line.item or self._items == 0:
            self._add([], None, None, text)

    def _mention(self, part: str) -> None:
        if _DENIED.fullmatch(part.strip("*_ ")) or _DENIED.fullmatch(_said(part)):
            self.none_critical = True
        else:
            self.doubt = True

    def _count(self, severity: Severity | None, text: str) -> None:
        """`none`, `0`, or how many there are."""
        if self._severity == severity:
            self._severity = self._status = self._items = None
        if severity == "critical":
            none = _NONE.fullmatch(text) is not None
            self.none_critical, self.doubt = self.none_critical or none, self.doubt or not none

    def _add(
        self, ids: list[str], severity: Severity | None, status: PointStatus | None, text: str
    ) -> None:
        status = status or self._status or "open"
        if self._items is not None and severity in (None, self._severity):
            self._items += 1
        for claimed in ids or [""]:
            before = self.known.get(claimed)
            how_bad = severity or (before.severity if before else self._severity)
            said = text or (before.text if before else "")
            if how_bad is not None:
                self.found.append((claimed, how_bad, status, said))
            elif status != "resolved":
                self.doubt = True  # an objection nobody gave a severity may be a critical one


def _severity_of(part: str, lead: str) -> Severity | None:
    for sign in lead:
        if sign in SEVERITY_MARKS:
            return SEVERITY_MARKS[sign]
    named = _NAMED.match(part)
    names: dict[str, Severity] = {name: name for name in SEVERITY_MARKS.values()}
    return names[named.group(1).lower()] if named else None


def _status_of(part: str, lead: str) -> PointStatus | None:
    """The state its marks give a point; marks that contradict each other leave it open."""
    signs = {sign for sign in lead if sign in STATUS_MARKS}
    if ending := _ENDING.search(part[len(lead) :]):
        signs |= {sign for sign in ending.groups() if sign}
    states = {STATUS_MARKS[sign] for sign in signs}
    return states.pop() if len(states) == 1 else ("open" if states else None)


def _is_count(text: str) -> bool:
    return _NONE.fullmatch(text) is not None or re.fullmatch(r"\d+\W*", text) is not None


def _said(part: str) -> str:
    """A sentence such as `I see no critical issues.` without who sees it."""
    return re.sub(
        r"^\W*(?:I (?:see|find|found|have)|there (?:are|is|were))\s+", "", part, flags=re.I
    )
