"""Exports a debate as a folder of small files, so that an LLM can read just what it needs."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contend.debates.exports import moderated, wording
from contend.debates.exports.cautions import cautions_of
from contend.debates.exports.forecast import forecast_parts
from contend.debates.exports.objections import COLUMNS, objection_rows
from contend.debates.exports.page import ExportPage, Facts, Part, Rows, Title, Words
from contend.debates.outputs import make_folder
from contend.debates.record import StoredDebate
from contend.graph.phases import PHASES
from contend.graph.protocols.base import strategy_for
from contend.graph.readings import StageScores
from contend.graph.settings import DebateSettings, FolderPlan, ForecastSettings, OutputFormat
from contend.graph.state import DebateState, Turn
from contend.models.files import write_private_file
from contend.models.text import shorten
from contend.models.tokens import count_tokens
from contend.nodes.forecast.schedule import round_phase
from contend.nodes.record import read_record

_ENDINGS: dict[OutputFormat, str] = {"markdown": "md", "json": "json", "text": "txt"}
# File names contain only these roles, and never text from a user.
_ROLES = frozenset(
    {"moderator", "position_advocate", "fact_checker", "judge", "proposer", "skeptic"}
    | {"synthesizer", "debater", "optimist", "pessimist", "contrarian", "historian", "user"}
)
_LINE = 100


@dataclass(frozen=True)
class FolderState:
    status: str
    error: str | None
    state: DebateState


def write_folder(debate: StoredDebate, plan: FolderPlan) -> Path:
    current = FolderState(debate.status, debate.error, debate.as_state())
    return Folder(debate, plan).begin(current).path


class FolderWriter:
    """Updates the folder of a running debate; readers never see a half-written file."""

    def __init__(self, debate: StoredDebate, settings: DebateSettings) -> None:
        self._debate, self._plan = debate, strategy_for(settings).folder_plan
        self._folder: Folder | None = None
        self.trouble = ""
        """Why the folder could not be written, or empty. The debate continues regardless."""

    def write(self, current: FolderState) -> None:
        if self._plan is None or self.trouble:
            return
        try:
            if self._folder is None:
                self._folder = Folder(self._debate, self._plan).begin(current)
            else:
                self._folder.update(current)
        except OSError as error:
            why = error.strerror or type(error).__name__
            again = f"contend export {self._debate.id[:8]} --format folder"
            self.trouble = f"{self._plan.base}: {why}; `{again}` writes it again"


class Folder:
    def __init__(self, debate: StoredDebate, plan: FolderPlan) -> None:
        self.path, self._debate, self._form = plan.base, debate, plan.form
        self._transcript, self._ending = plan.transcript, _ENDINGS[plan.form]
        self._settings = debate.as_settings()
        self._written: set[str] = set()
        # Turns do not change and there may be many, so describe each only once.
        self._known: dict[str, dict[str, Any]] = {}
        self._described: tuple[Any, ...] = ()

    def begin(self, current: FolderState) -> "Folder":
        def fill(path: Path) -> None:
            self.path = path
            self.update(current)

        debate = self._debate
        self.path = make_folder(self.path, debate.created_at, debate.id, fill)
        return self

    def update(self, current: FolderState) -> None:
        turns = current.state.get("turns", [])
        names = [self._name(at, turn) for at, turn in enumerate(turns, 1)]
        record = self._record(current)
        abouts = [self._about(turn, record) for turn in turns]
        (self.path / "messages").mkdir(mode=0o700, exist_ok=True)
        for name, turn, about in zip(names, turns, abouts, strict=True):
            if name not in self._written:
                self._write(f"messages/{name}", self._message(turn, about, record["id"]))
                self._written.add(name)
        self._describe(record, current)
        if self._transcript:
            self._write("transcript", _whole(turns, abouts, record))
        # Written last, so that it never lists a missing file.
        self._write("index", self._index(record, abouts, names))

    def _describe(self, record: Mapping[str, Any], current: FolderState) -> None:
        keys = ("round", "seats", "stop", "verdict", "final_answer", "forecast", "degraded")
        found = (*map(record.get, ("fact_checks", "rulings", "adjustments")),)
        marks = (current.status, *found, *(current.state.get(key) for key in keys))
        if marks != self._described:
            self._write("metadata", _metadata(record))
            self._write("summary", _summary(record, self._statements))
            self._described = marks

    def _record(self, current: FolderState) -> dict[str, Any]:
        about = self._debate
        return {
            **read_record(current.state, about.id).rated(about.user_rating).as_json(),
            "protocol": about.protocol,
            "status": current.status,
            "error": current.error,
            "created_at": about.created_at,
            "question": about.question,
            "settings": about.settings,
            **about.forecast_fate(),
        }

    def _about(self, turn: Turn, record: Mapping[str, Any]) -> dict[str, Any]:
        if turn.id not in self._known:
            about = _about(turn, wording.seat_names(record["seats"]))
            self._known[turn.id] = about | self._forecast_phase(turn)
        return self._known[turn.id]

    def _forecast_phase(self, turn: Turn) -> dict[str, str]:
        if not isinstance(self._settings, ForecastSettings):
            return {}
        if turn.phase == "synthesize":
            return {"phase": PHASES["verdict"].label}
        return {"phase": round_phase(self._settings, turn.round)} if turn.phase == "propose" else {}

    @property
    def _statements(self) -> dict[str, str]:
        return {turn: _turn_title(about) for turn, about in self._known.items()}

    def _message(self, turn: Turn, about: Mapping[str, Any], debate: str) -> ExportPage:
        facts = [("Id", turn.id), ("Round", str(turn.round)), ("Model", turn.model or "none")]
        if turn.replies_to:
            answered = self._statements.get(turn.replies_to, "a turn")
            facts.append(("Answers", f"{answered} ({turn.replies_to})"))
        facts += [("Tokens", _tokens(turn, about["tokens"]))]
        title = Title(f"{about['speaker']}: {about['phase']}")
        parts: list[Part] = [title, Facts(facts), Words(turn.text)]
        data = {**about, "debate": debate, "text": turn.text} | turn.model_dump(
            mode="json", include={"id", "model", "replies_to", "assessment", "length", "status"}
        )
        del data["content"]
        if isinstance(turn.assessment, StageScores):
            parts.append(
                Rows(*moderated.marks_table(turn.assessment.model_dump(), self._statements))
            )
        return ExportPage(parts, data)

    def _name(self, number: int, turn: Turn) -> str:
        seal = hashlib.sha256(f"{self._debate.id}/{turn.id}".encode()).hexdigest()[:8]
        return f"{number:03d}_{turn.role if turn.role in _ROLES else 'speaker'}_{seal}"

    def _write(self, name: str, page: ExportPage) -> None:
        made = {"markdown": page.as_markdown, "text": page.as_text, "json": page.as_json}
        write_private_file(self.path / f"{name}.{self._ending}", made[self._form]().encode())

    def _link(self, file: str) -> str:
        return f"[{file}]({file})" if self._form == "markdown" else file

    def _index(
        self,
        record: Mapping[str, Any],
        abouts: Sequence[dict[str, Any]],
        names: Sequence[str],
    ) -> ExportPage:
        listed = [
            {"number": at, "file": f"messages/{name}.{self._ending}"} | about
            for at, (about, name) in enumerate(zip(abouts, names, strict=True), 1)
        ]
        files = ["metadata", "summary", *(["transcript"] if self._transcript else [])]
        others = [f"{name}.{self._ending}" for name in files]
        facts = [
            *_head(record),
            ("Messages", f"{len(names)}{'' if record['status'] == 'done' else ' so far'}"),
            ("Other files", ", ".join(map(self._link, others))),
            *[(f"{s['name']} argues", s["position"]) for s in record["seats"] if s["position"]],
        ]
        head = ("No.", "File", "Speaker", "Phase", "Round", "Tokens", "Begins")
        keys = ("number", "file", "speaker", "phase", "round", "tokens", "content")
        shown = [{**each, "file": self._link(str(each["file"]))} for each in listed]
        rows = [[str(each[key]) for key in keys] for each in shown]
        parts: list[Part] = [Title(record["question"]), Facts(facts), Rows(head, rows)]
        data = {**_identity(record), "files": others, "messages": listed}
        return ExportPage(parts, data)


def _identity(record: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": record["id"],
        "topic": record["question"],
        "protocol": record["protocol"],
        "status": record["status"],
        "created_at": record["created_at"],
    }


def _head(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    how = record["settings"].get("debate_format")
    return [
        ("Debate", record["id"]),
        ("Protocol", f"{record['protocol']}{f', {how}' if how else ''}"),
        ("Status", _status(record)),
        ("Started", wording.local_time(record["created_at"])),
    ]


def _status(record: Mapping[str, Any]) -> str:
    if record["status"] == "done":
        return "done"
    why = f": {record['error']}" if record["error"] else ""
    status = "not finished" if record["status"] == "running" else f"{record['status']}, unfinished"
    return f"{status}{why}"


def _about(turn: Turn, called: Mapping[str, str]) -> dict[str, Any]:
    return {
        "speaker": called.get(turn.seat, turn.seat.capitalize()),
        "role": turn.role,
        "phase": _phase(turn),
        "round": turn.round,
        "tokens": count_tokens(turn.text),
        "content": shorten(turn.text, _LINE),
    }


def _phase(turn: Turn) -> str:
    if isinstance(turn.assessment, StageScores):
        return moderated.stage_words(turn.assessment.model_dump())
    return PHASES[turn.phase].label


def _turn_title(about: Mapping[str, Any]) -> str:
    in_a_round = about["round"] and about["phase"] != PHASES["closing"].label
    where = f", round {about['round']}" if in_a_round else ""
    return f"{about['speaker']}: {about['phase']}{where}"


def _tokens(turn: Turn, tokens: int) -> str:
    if turn.length is None:
        return str(tokens)
    over = ", overlong" if turn.is_overlong else ""
    cut = f", cut off after {turn.length.cut_after:g} s" if turn.length.cut_after else ""
    return f"{tokens} of {turn.length.limit}{over}{cut}"


def _metadata(record: Mapping[str, Any]) -> ExportPage:
    usage, timing = record["usage"], record["timing"]
    facts = [
        ("Question", record["question"]),
        *_head(record),
        ("Ended", wording.why_it_stopped(record)),
        ("Rounds", str(record["total_rounds"])),
        ("Tokens", wording.usage_words(usage)),
        ("Cost", wording.dollars(usage["cost_usd"])),
        ("Time", wording.duration(timing["total_ms"])),
    ]
    facts += [("Notice", each) for each in wording.notices(record)]
    seats = [[s["name"], s["role"], s["model"], s["position"]] for s in record["seats"]]
    chosen = [
        [name, "" if value is None else str(value)] for name, value in record["settings"].items()
    ]
    keys = ("stop_reason", "total_rounds", "usage", "timing", "degraded", "demonstration", "seats")
    data = _identity(record) | {key: record[key] for key in keys}
    parts: list[Part] = [
        Title("About this debate"),
        Facts(facts),
        Title("Seats", 2),
        Rows(("Name", "Role", "Model", "Position"), seats),
        Title("Settings", 2),
        Rows(("Setting", "Value"), chosen),
    ]
    return ExportPage(parts, data | {"settings": record["settings"]})


def _summary(record: Mapping[str, Any], statements: Mapping[str, str]) -> ExportPage:
    names = wording.seat_names(record["seats"])
    parts: list[Part] = [
        Title("Summary"),
        Facts([("Question", record["question"]), *_head(record)]),
        Facts([("Warning", caution) for caution in cautions_of(record)]),
        Words(record["final_answer"] or "There is no summary yet."),
    ]
    if outcome := _outcome(record):
        parts.append(Facts(outcome))
    if objections := objection_rows(record):
        parts += [Title("Objections", 2), Rows(COLUMNS, [row.cells() for row in objections])]
    parts += forecast_parts(record)
    if record.get("scores"):
        parts += [
            Title("Scores", 2),
            Facts(moderated.score_facts(record)),
            Rows(*moderated.scores_table(record)),
        ]
        parts += [
            Title("Scores by statement", 2),
            Rows(*moderated.statements_table(record, statements)),
        ]
    if record.get("fact_checks"):
        keys = ("claim", "verdict", "source", "why")
        rows = [
            [names[each["seat"]], *(each[key] for key in keys), each["correction"] or ""]
            for each in record["fact_checks"]
        ]
        head = ("Speaker", *(key.capitalize() for key in keys), "Correction")
        parts += [Title("Fact checks", 2), Rows(head, rows)]
    if record.get("rulings"):
        ruled = [[names[r["seat"]], r["breach"], r["text"]] for r in record["rulings"]]
        parts += [Title("Rulings", 2), Rows(("Speaker", "Breach", "Ruling"), ruled)]
    if record.get("adjustments"):
        changes = [
            [str(each["round"]), moderated.ADJUSTED[each["change"]], each["text"]]
            for each in record["adjustments"]
        ]
        parts += [Title("Changes of the rounds", 2), Rows(("After", "Change", "Reason"), changes)]
    kept = (
        *(
            "scores",
            "scoring",
            "winner",
            "fact_checks",
            "rulings",
            "adjustments",
            "end_reason",
            "auto_score",
        ),
        *("stop", "points", "eliminations", "demonstration", "user_rating", "due", "resolution"),
    )
    data = {key: record[key] for key in kept if key in record}
    if record.get("forecast"):  # without the log, which repeats the messages
        data["forecast"] = {k: v for k, v in record["forecast"].items() if k != "debate_log"}
    shown = {"warnings": cautions_of(record), "summary": record["final_answer"]}
    return ExportPage(parts, {**_identity(record), **shown, **data})


def _outcome(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    facts = [("Note", wording.DEMONSTRATION)] if record["demonstration"] else []
    if record["stop"]:
        facts.append(("Stopped", wording.stop_sentence(record)))
    facts += [("Conceded", each) for each in wording.concessions(record)]
    if record["user_rating"] is not None:
        facts.append(("Your rating", f"{record['user_rating']} of 10"))
    if rated := record["auto_score"]:
        by = f"by {rated['judge_model']}: {wording.rating_words(rated)}"
        facts.append(("Score", f"{rated['score']:g} of 10 {by}"))
    return facts


def _whole(
    turns: Sequence[Turn], abouts: Sequence[Mapping[str, Any]], record: Mapping[str, Any]
) -> ExportPage:
    parts: list[Part] = [Title(record["question"]), Facts(_head(record))]
    said, stage = [], ""
    closings = wording.closings_begin(turns)
    opening = wording.opening_title(seat["role"] for seat in record["seats"])
    for at, (turn, about) in enumerate(zip(turns, abouts, strict=True)):
        heading = f"Round {turn.round}" if turn.round else opening
        heading = wording.CLOSINGS if at >= closings else heading
        heading = "Result" if PHASES[turn.phase].after_rounds else heading
        if heading != stage:
            parts.append(Title(heading, 2))
            stage = heading
        parts += [Title(f"{about['speaker']}: {about['phase']}", 3), Words(turn.text)]
        said.append({**about, "id": turn.id, "text": turn.text})
    return ExportPage(parts, {**_identity(record), "messages": said})
