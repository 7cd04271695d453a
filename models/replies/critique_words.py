import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from contend.graph.readings import SEVERITY_MARKS, Assessment, Point, PointStatus, Severity
from contend.models.replies.critique import ISSUE, NONE_LEFT, MarkedPoint, number_points
from contend.models.replies.own_words import REPORTING, RETRACTION, Line, sentences_of, split_lines

STATUS_MARKS: dict[str, PointStatus] = {"✅": "resolved", "⚠": "partial", "❌": "open"}
READY_SIGNAL = "Ready for Synthesis ✅"

_SEVERITIES, _RED = "".join(SEVERITY_MARKS.values()), SEVERITY_MARKS["critical"]
_STATE = r"(?:(?:partially|partly|not|un)[\s-]*)?resolved"
_ID = r"S\d+\b"
# May precede an objection: symbols, ids, states, and severities followed by a separator.
_LABEL = re.compile(
    rf"(?:[^\w\s]|[\s_]|{_ID}|{_STATE}(?!\w)"
    rf"|(?:critical|major|minor)(?:\s+{ISSUE})?(?=\W*?(?:[:–—(|/]|-\s|$)))*",
    re.IGNORECASE,
)
# May follow an objection: `... -> ✅ RESOLVED`, `... . RESOLVED ✅`, `... (⚠️)`.
_ENDING = re.compile(
    rf"[-–—→>:|(.]\s*(?:{_STATE}\W*?)?([✅⚠❌])\ufe0f?\W*(?:{_STATE})?\W*$", re.IGNORECASE
)
_MARK = re.compile(f"[{_SEVERITIES}✅⚠❌]")
_CRITICAL = re.compile(rf"{_RED}|\bcritical(?:ly)?\b", re.IGNORECASE)
_UNSETTLED = re.compile(rf"{RETRACTION.pattern}|\?|\bno\b|\bpart|\bunresolved", re.IGNORECASE)
_SCORE = re.compile(
    r"[^\w\"“'`]*(?:(?:my|the|current|overall|final|answer|quality|new) )*(?:score|rating|quality)"
    r"(?: now| is| of| \(1[-–]10\))*[\s:=*_|]+(10(?:\.0+)?|[1-9](?:\.\d+)?)"
    r"(?:\s*(?:/|out of|of)\s*10)?[^\w?\"”'`]*",
    re.IGNORECASE,
)
_SOME_SCORE = re.compile(r"\d\s*(?:/|(?:out )?of)\s*10\b|\b(?:score|rat(?:e|ing))\b.*\d", re.I)


@dataclass(frozen=True)
class _Signal:
    counts: bool  # not if the line before it casts doubt on it
    others: list[Line]


def assessment_from_text(speech: str, known: Sequence[Point]) -> Assessment | None:
    """Parse the protocol's keywords in a critique. Return None if they are ambiguous."""
    lines = split_lines(speech)
    signal = _find_signal(lines)
    body = signal.others if signal else lines
    if any(READY_SIGNAL.casefold() in x.text.casefold() for x in body if signal or x.own):
        return None  # a signal before the end may be a quote that the critic rejects
    score, vague = _score(body)
    reading = _Reading({point.id: point for point in known})
    for text in _under_headings([_without_score(line) for line in body if line.own]):
        reading.take(text)
    reading.suspect("\n".join(line.text for line in body if not line.own))
    if signal:
        sure = signal.counts and not (reading.doubt or vague)
    else:
        sure = reading.critical_left or reading.none_critical
    if not sure:
        return None
    return Assessment(
        ready=signal is not None,
        score=score,
        points=number_points(reading.found, known),
        none_critical=reading.none_critical,
        read_from="words",
    )


def _under_headings(lines: list[Line]) -> Iterator[str]:
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


def _find_signal(lines: list[Line]) -> _Signal | None:
    """Find the ready signal at the end of the critique; only scores may follow it."""
    at = len(lines) - 1
    while at > 0 and _SCORE.fullmatch(lines[at].text):
        at -= 1
    if not lines or not lines[at].own or lines[at].nested:
        return None
    sentences = [replace(lines[at], text=each) for each in sentences_of(lines[at].text)]
    last = len(sentences) - 1
    while last > 0 and _SCORE.fullmatch(sentences[last].text):
        last -= 1
    if not _is_signal(sentences[last].text):
        return None
    before = [*lines[:at], *sentences[:last]]
    counts = not before or _may_close(before[-1])
    return _Signal(counts, [*before, *sentences[last + 1 :], *lines[at + 1 :]])


def _is_signal(sentence: str) -> bool:
    bare = re.sub(r"[*_]", "", sentence).strip().rstrip(".!").casefold()
    return bare.removeprefix("verdict:").strip() == READY_SIGNAL.casefold()


def _may_close(before: Line) -> bool:
    """Return whether a ready signal that follows this line counts."""
    text = before.text.rstrip(" *_\"”)'\ufe0f")
    marked, ended = _MARK.search(text), text.endswith((".", "!", *STATUS_MARKS))
    if not before.own or text.endswith((*":,;?…–—-",)):
        return False
    if not (ended or marked or before.sign or _SCORE.fullmatch(before.text)):
        return False
    # A complete point is about the answer, so words such as "not" in it do not retract the signal.
    taken_back = re.compile(REPORTING, re.I) if marked and ended else RETRACTION
    return not taken_back.search(re.split(r"(?<=[.!?])\s+", text)[-1])


def _score(lines: list[Line]) -> tuple[float | None, bool]:
    own = [line.text for line in lines if line.own and not line.nested]
    scores = {score for text in own for score in _stated_scores(text)}
    vague = len(scores) != 1 and any(_SOME_SCORE.search(text) for text in own)
    return scores.pop() if len(scores) == 1 else None, vague


def _stated_scores(text: str) -> Iterator[float]:
    """Yield the scores that a line states, except quoted, retracted or corrected ones."""
    sentences = sentences_of(text)
    for at, sentence in enumerate(sentences):
        clauses = re.split(r",\s+|\s+[-–—]\s+", sentence)
        stated = [found for clause in clauses if (found := _SCORE.fullmatch(clause))]
        others = [clause for clause in clauses if not _SCORE.fullmatch(clause)]
        introduced = at > 0 and re.search(REPORTING, sentences[at - 1], re.IGNORECASE)
        doubtful = (
            RETRACTION.search(x) or _SOME_SCORE.search(x) for x in others + sentences[at + 1 :]
        )
        if not introduced and not any(doubtful):
            yield from (float(found.group(1)) for found in stated)


def _without_score(line: Line) -> Line:
    kept = [each for each in sentences_of(line.text) if not _SCORE.fullmatch(each)]
    return replace(line, text=" ".join(kept))


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
            if NONE_LEFT.fullmatch(plain.strip(" .!)]")):
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
                self.doubt |= how_bad is None  # without a severity, it may be critical
            else:  # without an id it is new, so it cannot be resolved
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
    """Return the symbols' status, `open` if they conflict, or None if there are no symbols."""
    signs = {sign for sign in lead if sign in STATUS_MARKS} | set(_ENDING.findall(rest))
    states = {STATUS_MARKS[sign] for sign in signs}
    return states.pop() if len(states) == 1 else ("open" if states else None)
