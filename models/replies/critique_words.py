"""Parses the words and marks of a critique; anything ambiguous is ignored."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from contend.graph.readings import SEVERITY_MARKS, Assessment, Point, PointStatus, Severity
from contend.models.replies.critique import MarkedPoint, number_points

STATUS_MARKS: dict[str, PointStatus] = {"✅": "resolved", "⚠": "partial", "❌": "open"}
READY_SIGNAL = "Ready for Synthesis ✅"

_SEVERITIES, _RED = "".join(SEVERITY_MARKS.values()), SEVERITY_MARKS["critical"]
_ISSUE = r"(?:issues?|points?|problems?|flaws?|concerns?|errors?|gaps?|objections?)"
_STATE = r"(?:(?:partially|partly|not|un)[\s-]*)?resolved"
_ID = r"S\d+\b"
# What may precede an objection: signs, ids, states, and severities followed by a separator.
_LABEL = re.compile(
    rf"(?:[^\w\s]|[\s_]|{_ID}|{_STATE}(?!\w)"
    rf"|(?:critical|major|minor)(?:\s+{_ISSUE})?(?=\W*?(?:[:–—(|/]|-\s|$)))*",
    re.IGNORECASE,
)
# A state after the objection: `... -> ✅ RESOLVED`, `... . RESOLVED ✅`, `... (⚠️)`.
_ENDING = re.compile(
    rf"[-–—→>:|(.]\s*(?:{_STATE}\W*?)?([✅⚠❌])\ufe0f?\W*(?:{_STATE})?\W*$", re.IGNORECASE
)
_MARK = re.compile(f"[{_SEVERITIES}✅⚠❌]")
_CRITICAL = re.compile(rf"{_RED}|\bcritical(?:ly)?\b", re.IGNORECASE)
# "No new" or "no other" critical issues may leave an old one open, so those words are not here.
_NONE = re.compile(
    r"(?:(?:I (?:see|find|found|have)|there (?:are|is|were)) )?(?:no|none|nothing|n/a|zero|0)"
    rf"(?: (?:more|remaining|open|unresolved|critical|major|minor|or))*(?: {_ISSUE})?"
    r"(?: (?:left|remain(?:s|ing)?|found|identified|outstanding|open|any ?more|were|are|at all))*",
    re.IGNORECASE,
)
# Words that only report something, and words that take it back.
_SAYING = r"\b(?:sa(?:y|id)|writ|wrote|signal|quot|claim|call|declar|want|ask|told|tell)\w*"
_REFUSING = (
    r"n['’]t\b|\b(?:not|cannot|never|nor|refus\w+|until|unless|once|if|when|before|after|"
    r"would|should|could|might|but|still|however|yet|except|almost|only|though)\b"
)
_TAKING_BACK = re.compile(rf"{_SAYING}|{_REFUSING}", re.IGNORECASE)
_UNSETTLED = re.compile(rf"{_TAKING_BACK.pattern}|\?|\bno\b|\bpart|\bunresolved", re.IGNORECASE)
_SCORE = re.compile(
    r"\W*(?:(?:my|the|current|overall|final|answer|quality|new) )*score(?: now| \(1[-–]10\))?"
    r"[\s:=*_|]+(10(?:\.0+)?|[1-9](?:\.\d+)?)(?:\s*(?:/|out of|of)\s*10)?\W*",
    re.IGNORECASE,
)
_SOME_SCORE = re.compile(r"\d\s*(?:/|(?:out )?of)\s*10\b|\b(?:score|rat(?:e|ing))\b.*\d", re.I)


@dataclass(frozen=True)
class _Line:
    """A line without Markdown; quotes and code are not the speaker's own."""

    text: str
    own: bool
    sign: str
    nested: bool


def assessment_from_words(speech: str, known: list[Point]) -> Assessment | None:
    """Read the words of the protocol; None if they are missing or ambiguous."""
    lines = list(_lines(speech))
    ready = bool(lines) and _is_signal(lines[-1])
    body = lines[:-1] if ready else lines
    if any(READY_SIGNAL.casefold() in x.text.casefold() for x in body if ready or x.own):
        return None  # a signal before the end may be quoted only to reject it
    reading = _Reading({point.id: point for point in known})
    for text in _under_headings([line for line in body if line.own]):
        reading.take(text)
    reading.suspect("\n".join(line.text for line in body if not line.own))
    score, vague = _score(body)
    if ready:
        sure = not (reading.doubt or vague) and (not body or _may_close(body[-1]))
    else:
        sure = reading.critical_left or reading.none_critical
    if not sure:
        return None
    return Assessment(
        ready=ready,
        score=score,
        points=number_points(reading.found, known),
        none_critical=reading.none_critical,
        read_from="words",
    )


def _lines(speech: str) -> Iterator[_Line]:
    code = False
    for written in speech.splitlines():
        fence, bare = "```" in written, written.strip()
        if re.search(r"[^\W_]", bare) or _MARK.search(bare):
            sign = re.match(r"(?:[-+•–]|\*(?!\*)|\d+[.)])\s+|#{1,6}\s*|", bare)
            begin = sign.group() if sign else ""
            own = not (code or fence or bare.startswith(">"))
            yield _Line(bare[len(begin) :], own, begin, written.startswith(("  ", "\t")))
        if fence:  # only a bare fence closes another
            code = not code if bare == "```" else code or written.count("```") % 2 == 1


def _under_headings(lines: list[_Line]) -> Iterator[str]:
    heading, waiting = "", False
    for line in lines:
        label, bare = _split_label(line.text)[0], _is_bare(line.text)
        other = bare or line.sign.startswith("#") or (_severity_of(heading) and _severity_of(label))
        if line.nested:
            yield line.text
        elif heading and not other and (line.sign or waiting):
            waiting = False
            yield f"{heading}: {line.text}"
        else:
            yield from [heading] * waiting + [line.text] * (not bare)
            heading, waiting = (label, True) if bare else ("", False)
    yield from [heading] * waiting


def _is_signal(line: _Line) -> bool:
    bare = re.sub(r"[*_]", "", line.text).strip().rstrip(".!").casefold()
    return line.own and bare.removeprefix("verdict:").strip() == READY_SIGNAL.casefold()


def _may_close(before: _Line) -> bool:
    """Whether a signal after this line counts: nothing introduces it or takes it back."""
    text = before.text.rstrip(" *_\"”)'\ufe0f")
    marked, ended = _MARK.search(text), text.endswith((".", "!", *STATUS_MARKS))
    if not before.own or text.endswith((*":,;?…–—-",)):
        return False
    if not (ended or marked or before.sign or _SCORE.fullmatch(before.text)):
        return False
    # A complete point is about the answer, and may say what the answer does not do.
    taken_back = re.compile(_SAYING, re.I) if marked and ended else _TAKING_BACK
    return not taken_back.search(re.split(r"(?<=[.!?])\s+", text)[-1])


def _score(lines: list[_Line]) -> tuple[float | None, bool]:
    own = [line.text for line in lines if line.own]
    scores = {float(stated.group(1)) for text in own if (stated := _SCORE.fullmatch(text))}
    vague = len(scores) != 1 and any(_SOME_SCORE.search(text) for text in own)
    return scores.pop() if len(scores) == 1 else None, vague


@dataclass
class _Reading:
    known: dict[str, Point]
    found: list[MarkedPoint] = field(default_factory=list)
    denied: bool = False
    doubt: bool = False

    @property
    def critical_left(self) -> bool:
        return any(s == "critical" and status != "resolved" for _, s, status, _ in self.found)

    @property
    def none_critical(self) -> bool:
        return bool(self.found or self.denied) and not (self.doubt or self.critical_left)

    def suspect(self, text: str) -> None:
        self.doubt |= _CRITICAL.search(text) is not None

    def take(self, line: str) -> None:
        for part in re.split(rf"(?<=[.!?;])\s+(?=[{_SEVERITIES}])", line):
            lead, rest = _split_label(part)
            severity, status = _severity_of(lead), _status_of(lead, rest)
            text = _ENDING.sub("", rest).strip(" \t*_`|:–—-")[:400]
            ids = [claimed for claimed in re.findall(_ID, lead) if claimed in self.known]
            plain = re.sub(rf"[{_RED}*_\s]+", " ", text if severity else part)
            if _NONE.fullmatch(plain.strip(" .!)]")):
                self.denied |= _CRITICAL.search(part) is not None
            elif _is_bare(part) or not (severity or status or (ids and text)):
                self.suspect(part)
            else:
                self._add(ids, severity, status or "open", text)
                self.doubt |= status == "resolved" and _UNSETTLED.search(part) is not None

    def _add(
        self, ids: list[str], severity: Severity | None, status: PointStatus, text: str
    ) -> None:
        self.suspect(text)
        for claimed in ids or [""]:
            before = self.known.get(claimed)
            how_bad = severity or (before.severity if before else None)
            if how_bad is not None:
                self.found.append((claimed, how_bad, status, text))
            if status != "resolved":
                self.doubt |= how_bad is None  # without a severity it may be critical
            else:  # a critical one that was never raised cannot be resolved
                self.doubt |= how_bad == "critical" and not claimed


def _split_label(text: str) -> tuple[str, str]:
    label = _LABEL.match(text)
    end = label.end() if label else 0
    return text[:end], text[end:]


def _is_bare(text: str) -> bool:
    lead, rest = _split_label(text)
    labelled = (_severity_of(lead) or _status_of(lead, "")) and not re.search(_ID, lead)
    return bool(labelled) and re.fullmatch(r"(?!0\W*$)\d*\W*", rest) is not None


def _severity_of(lead: str) -> Severity | None:
    marks = SEVERITY_MARKS.items()
    return next((name for name, mark in marks if mark in lead or name in lead.lower()), None)


def _status_of(lead: str, rest: str) -> PointStatus | None:
    """Return the status of the marks; contradictory marks mean open."""
    signs = {sign for sign in lead if sign in STATUS_MARKS} | set(_ENDING.findall(rest))
    states = {STATUS_MARKS[sign] for sign in signs}
    return states.pop() if len(states) == 1 else ("open" if states else None)
