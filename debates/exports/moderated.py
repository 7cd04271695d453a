from collections.abc import Mapping, Sequence
from typing import Any

from contend.debates.exports.wording import seat_names
from contend.nodes.moderated.score_notes import result_words, scoring_notes

Record = Mapping[str, Any]
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def scores_table(record: Record) -> Table:
    scores = record["scores"]
    criteria = next((list(s["breakdown"]) for s in scores.values() if s["breakdown"]), [])
    head = ("Side", "Total", *map(_criterion, criteria))
    rows = [
        [name, _number(each["total"]), *(_number(each["breakdown"].get(c)) for c in criteria)]
        for name, each in scores.items()
    ]
    return head, rows


def statements_table(record: Record, statements: Mapping[str, str]) -> Table:
    scored = [each for side in record["scores"].values() for each in side["turns"]]
    criteria = list(scored[0]["marks"]) if scored else []
    head = ("Statement", "Total", *map(_criterion, criteria), "Notes")
    rows = [
        [
            *(statements[each["turn"]], _number(each["total"])),
            *(_number(each["marks"][criterion]) for criterion in criteria),
            ", ".join([*(["contested"] if each["contested"] else []), *_deducted(each)]),
        ]
        for each in scored
    ]
    return head, rows


def _deducted(score: Record) -> list[str]:
    return [f"{each['rule'].replace('_', ' ')} -{each['points']:g}" for each in score["deductions"]]


def marks_table(reading: Record, statements: Mapping[str, str]) -> Table:
    criteria = list(reading["marks"][0]["values"]) if reading["marks"] else []
    rows = [
        [statements[each["turn"]], *(f"{each['values'][name]:g}" for name in criteria)]
        for each in reading["marks"]
    ]
    return ("Statement", *map(_criterion, criteria)), rows


def stage_words(reading: Record) -> str:
    """Describe what the judge scored, such as `scores of round 1`."""
    what = reading["stage"].replace("-", " ")
    what = f"the {what}" if what in ("openings", "closings") else what
    other = ", in the other order" if reading["order"] else ""
    return f"scores of {what}{other}" if what else f"scores{other}"


ADJUSTED = {"extend": "one round added", "cut": "ended early"}


def _criterion(name: str) -> str:
    return name.replace("_", " ")


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.2f}"


def moderated_facts(record: Record) -> list[tuple[str, str]]:
    if "end_reason" not in record:
        return []
    return [
        *score_facts(record),
        *_criteria_facts(record),
        *_check_facts(record["fact_checks"]),
        *_ruling_facts(record),
        *_adjustment_facts(record),
        *([("Folder", record["output_dir"])] if record.get("output_dir") else []),
    ]


def score_facts(record: Record) -> list[tuple[str, str]]:
    scores, scoring = record["scores"], record["scoring"]
    if scores is None or scoring is None:
        return []
    shown = ", ".join(f"{name} {_number(each['total'])}" for name, each in scores.items())
    names = seat_names(record["seats"])
    notes = [f"of 10, by {scoring['judge_model']}"]
    notes += ["not meaningful: demo model"] if record["demonstration"] else []
    notes += scoring_notes(scoring, names)
    facts = [("Scores", f"{shown} ({'; '.join(notes)})")]
    result = result_words(scoring, names.get(record["winner"]))
    return facts + ([("Winner", result)] if result else [])


def _criteria_facts(record: Record) -> list[tuple[str, str]]:
    return [
        (
            name,
            ", ".join(f"{_criterion(c)} {_number(mark)}" for c, mark in each["breakdown"].items()),
        )
        for name, each in (record["scores"] or {}).items()
        if each["breakdown"]
    ]


def _check_facts(checks: Sequence[Record]) -> list[tuple[str, str]]:
    if not checks:
        return []
    verdicts = [check["verdict"] for check in checks]
    kinds = ("supported", "contradicted", "unverifiable")
    counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in kinds)
    corrected = len({check["turn"] for check in checks if check["correction"]})
    return [("Claims", f"{counts}; {corrected} corrected")]


def _ruling_facts(record: Record) -> list[tuple[str, str]]:
    if not record["rulings"]:
        return []
    names = seat_names(record["seats"])
    shown = (
        f"{names.get(each['seat'], each['seat'])} ({each['breach'].replace('_', ' ')})"
        for each in record["rulings"]
    )
    return [("Rulings", ", ".join(shown))]


def _adjustment_facts(record: Record) -> list[tuple[str, str]]:
    return [
        ("Rounds", f"{ADJUSTED[each['change']]} after round {each['round']}: {each['text']}")
        for each in record.get("adjustments", ())
    ]
