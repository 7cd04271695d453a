"""Exports training data from stored debates: final answers, or pairs of drafts and revisions."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from contend.debates.record import StoredDebate
from contend.graph.record import DebateRecord
from contend.nodes.drafts import first_answers
from contend.nodes.prompting.answers import answer_part, answers_of

_LEFT_OUT = {
    "not done": "not finished",
    "demonstration": "written by the demo model",
    "no score": "without a score or rating",
    "low score": "scored lower",
    "not useful": "of no use for training, as the judge said",
    "nothing to learn": "without a pair of answers",
}


@dataclass
class TrainingData:
    form: str
    min_score: float
    rows: list[dict[str, Any]] = field(default_factory=list)
    used: list[DebateRecord] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    def as_jsonl(self) -> str:
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in self.rows)

    def card(self) -> str:
        models = Counter(model for each in self.used for model in {*each.models.values()})
        protocols = Counter(each.protocol for each in self.used)
        lines = [
            f"# Training data ({self.form})",
            "",
            f"Rows: {len(self.rows)}. Debates: {len(self.used)}. Exported by Contend on "
            f"{datetime.now(UTC).date().isoformat()}.",
            "",
            f"- Form: {_FORMS[self.form].description}",
            f"- Debates with a score of at least {self.min_score:g} of 10: the user's rating if "
            "there is one, else the judge's score, which a model gave.",
            f"- Protocols: {_counted(protocols)}",
            f"- Models: {_counted(models)}. Their terms may restrict training on their output.",
            *(f"- Left out, {_LEFT_OUT[why]}: {n}" for why, n in self.left_out.items()),
            "- Questions and answers are as stored. Check them for personal data and for errors "
            "before you train on them.",
        ]
        return "\n".join(lines) + "\n"


def training_data(debates: Iterable[StoredDebate], form: str, min_score: float) -> TrainingData:
    found = TrainingData(form, min_score)
    for debate in debates:
        record = debate.as_record()
        why = _why_left_out(record, min_score)
        rows = [] if why else list(_FORMS[form].rows(debate, record))
        if rows:
            found.rows += rows
            found.used.append(record)
        else:
            found.left_out[why or "nothing to learn"] += 1
    return found


def _why_left_out(record: DebateRecord, min_score: float) -> str | None:
    rated = record.auto_score
    reasons = {
        "not done": record.status != "done" or not record.final_answer,
        "demonstration": record.demonstration,
        "no score": record.quality_score is None,
        "low score": (record.quality_score or 0) < min_score,
        "not useful": rated is not None and not rated.would_benefit_from_finetune,
    }
    return next((why for why, applies in reasons.items() if applies), None)


def _final_answer(_debate: StoredDebate, record: DebateRecord) -> Iterator[dict[str, Any]]:
    messages = [
        {"role": "user", "content": record.query},
        {"role": "assistant", "content": record.final_answer},
    ]
    yield {"messages": messages, "about": _about(record)}


def _revisions(debate: StoredDebate, record: DebateRecord) -> Iterator[dict[str, Any]]:
    state = debate.as_state()
    for draft in [] if "request" in state else first_answers(state):
        revised = answer_part(answers_of(state, draft.seat)[-1].text)
        if revised != draft.text:
            yield {
                "prompt": record.query,
                "chosen": revised,
                "rejected": draft.text,
                "about": _about(record) | {"seat": draft.seat, "model": draft.model},
            }


def _about(record: DebateRecord) -> dict[str, Any]:
    by = "user" if record.user_rating is not None else "judge"
    return {
        "debate": record.id,
        "protocol": record.protocol,
        "score": record.quality_score,
        "scored_by": by,
    }


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({n})" for name, n in sorted(counts.items())) or "none"


@dataclass(frozen=True)
class _Form:
    description: str
    rows: Any


_FORMS = {
    "sft": _Form("the question and the final answer, as messages", _final_answer),
    "dpo": _Form("a revised answer (chosen) against the first draft (rejected)", _revisions),
}
