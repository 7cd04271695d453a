"""Builds the summary above a transcript: a short answer, the changes and the dissent."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from contend.debates.exports import wording
from contend.debates.exports.moderated import score_facts
from contend.debates.exports.objections import objection_rows
from contend.models.text import shorten

Record = Mapping[str, Any]

_MOST_SENTENCES, _LONGEST_ANSWER = 3, 500
_MOST_SHOWN, _LONGEST_SENTENCE = 6, 220
# Sentences that share at least this part of their words count as the same.
_SAME_SENTENCE = 0.6
_SENTENCE_END = re.compile(r"(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\bvs\.)(?<=[.!?…])[\"”)]*\s+")


def short_answer(text: str) -> str:
    found = _sentences(text)[:_MOST_SENTENCES]
    while len(found) > 1 and len(" ".join(found)) > _LONGEST_ANSWER:
        found.pop()
    return shorten(" ".join(found) or text, _LONGEST_ANSWER)


def verdict_facts(record: Record) -> list[tuple[str, str]]:
    rounds = record["total_rounds"]
    after = f"after {rounds} round{'' if rounds == 1 else 's'}"
    facts = [("Open", words) for words in _open_words(record)]
    facts += _score_facts(record)
    facts.append(("Stopped", f"{after}: {wording.why_it_stopped(record)}"))
    facts += wording.draft_facts(record)
    facts.append(("Took part", _participants(record["seats"])))
    usage, took = record["usage"], wording.duration(record["timing"]["total_ms"])
    cost = _cost_words(usage["cost_usd"])
    return [*facts, ("Cost", f"{cost}; tokens {wording.usage_words(usage)}; {took}")]


def _open_words(record: Record) -> Iterable[str]:
    rows = objection_rows(record)
    left = [f"{row.mark} {row.id} {row.text}" for row in rows if row.is_open]
    if rows and not left:
        yield "no objection"
    yield from left


def _score_facts(record: Record) -> list[tuple[str, str]]:
    if record["demonstration"]:
        return [("Score", "not meaningful (demo model)")]
    facts = score_facts(record) if record.get("scores") else []
    if rated := record["auto_score"]:
        facts.append(("Score", f"{rated['score']:g} of 10 by {rated['judge_model']}"))
    if record["user_rating"] is not None:
        facts.append(("Your rating", f"{record['user_rating']} of 10"))
    return facts


def _participants(seats: Sequence[Record]) -> str:
    by_model: dict[str, list[str]] = {}
    for seat in seats:
        by_model.setdefault(seat["model"], []).append(seat["name"])
    return "; ".join(f"{wording.listed(names)} ({model})" for model, names in by_model.items())


def _cost_words(dollars: float | None) -> str:
    if dollars == 0:
        return "free (local)"
    return "unknown price" if dollars is None else wording.dollars(dollars)


def changes(record: Record) -> list[str]:
    """Describe how the answer differs from the draft; empty if several seats wrote drafts."""
    drafts = [turn for turn in record["turns"] if turn["phase"] == "propose"]
    if not record["final_answer"] or len({turn["seat"] for turn in drafts}) != 1:
        return []
    before, after = _sentences(drafts[0]["text"]), _sentences(record["final_answer"])
    kept = [each for each in after if _is_in(each, before)]
    added = [each for each in after if each not in kept]
    dropped = [each for each in before if not _is_in(each, after)]
    if not added and not dropped:
        return ["The answer says the same as the first draft."]
    total = f"{len(kept)} of {len(after)} sentences of the answer are in the first draft."
    return [total, *_listed("New", added), *_listed("Dropped", dropped)]


def _listed(what: str, sentences: Sequence[str]) -> list[str]:
    lines = [f"{what}: {shorten(each, _LONGEST_SENTENCE)}" for each in sentences[:_MOST_SHOWN]]
    more = len(sentences) - _MOST_SHOWN
    return [*lines, f"{what}: {more} more."] if more > 0 else lines


def _is_in(sentence: str, others: Sequence[str]) -> bool:
    words = _words(sentence)
    return any(
        SequenceMatcher(None, words, _words(other), autojunk=False).ratio() >= _SAME_SENTENCE
        for other in others
    )


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())


def dissent(record: Record) -> list[str]:
    names = wording.seat_names(record["seats"])
    lines = [
        f"{names.get(point['raised_by'], point['raised_by'])}: {point['id']} {point['text']}"
        for point in wording.point_groups(record["points"])["open"]
    ]
    winner, active = record.get("winner"), record.get("active") or []
    for seat in active if winner else ():
        last = [t for t in record["turns"] if t["seat"] == seat and t["phase"] == "propose"]
        if seat != winner and last:
            lines.append(
                f"{names.get(seat, seat)} did not concede: {short_answer(last[-1]['text'])}"
            )
    return lines


def _sentences(text: str) -> list[str]:
    prose, skipped = [], 0
    for token in _parser().parse(text):
        if token.type in ("heading_open", "table_open"):
            skipped += 1
        elif token.type in ("heading_close", "table_close"):
            skipped -= 1
        elif token.type == "inline" and not skipped:
            prose.append("".join(map(_inline_text, token.children or ())))
    found = [each.strip() for part in prose for each in _SENTENCE_END.split(part)]
    return [each for each in found if each]


def _inline_text(token: Token) -> str:
    return " " if token.type.endswith("break") else token.content


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False}).enable("table")
