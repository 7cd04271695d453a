"""A handwritten debate with realistic text, for screenshots."""

import json
import re
from typing import Any

from tests.support.floor_server import nonce_of
from tests.support.model_server import Request, Script

QUESTION = "Should a four-person team split its monolith into services?"
MODELS = ("gpt-5-mini", "gpt-5", "gpt-4.1")
SETTINGS = {"skeptic_model": "openai:gpt-5", "judge_model": "openai:gpt-4.1"}

_PROPOSALS = [
    """**Yes, but only into three services**: accounts, catalogue and billing.

1. Each follows a boundary that the code already has, so little has to be rewritten.
2. Each can be deployed on its own. Today one failed migration blocks *every* release.
3. Billing changes twice a year and the catalogue every day; they should not share a release.

The cost is one gateway and three pipelines, about two weeks of work.""",
    """## Replies
- **S1** Accepted: with four people, being on call for three services is the limit. I withdraw \
that plan.
- **S2** Accepted: invoices and refunds stay in one transaction.
- **S3** Accepted: the table below counts it.
- **S4** Accepted: the pipeline comes first.

## Revised answer
**No. Keep one service, and draw the boundaries inside it first.**

- Give each module its own schema and forbid queries across schemas; a test enforces it.
- Split the *pipeline* before the program: run only the tests of the changed module. That \
removes most of \
the waiting that made the split look attractive.
- Take out a service only when a module needs to scale, fail or be released on its own.

| option | build | run, per month |
|---|---|---|
| three services | 10 weeks | 4 on-call weeks, $900 |
| modules in one service | 3 weeks | 1 on-call week, $250 |""",
    """## Replies
- **S3** Accepted: a week of work, counted below.
- **S5** Accepted: I name three measurements and their limits.

## Revised answer
**No. Keep one service, and draw the boundaries inside it first.** Split a module off when one \
of these holds \
for a quarter: it needs more than four times the machines of the rest, its releases wait more \
than a day for \
others, or it causes more than half of the incidents.""",
]
_CRITIQUES = [
    """**S1** The plan assumes that four people can be on call for three services around the clock.

**S2** A refund touches billing *and* accounts. Split, it needs a distributed transaction.

**S3** Two weeks is the cost of building, not of running: tracing, alerts and versioned \
interfaces are missing.

**S4** The failed migrations are a problem of the pipeline. A split moves them, it does not fix \
them.""",
    """**S1**, **S2** and **S4** are resolved: the new answer needs neither the on-call load nor \
the split transaction.

**S3** is partly resolved. The table counts machines but not the time to keep schemas apart.

**S5** "Needs to scale, fail or be released on its own" is no test that a team can apply.""",
    "**S3** and **S5** are resolved. The answer states limits that a team can measure.",
]
_POINTS = [
    ("critical", "Four people cannot be on call for three services"),
    ("critical", "A refund would need a distributed transaction"),
    ("major", "The cost of running three services is not counted"),
    ("major", "Failed migrations are a problem of the pipeline"),
    ("minor", "No test says when to split a module off"),
]
# The status of each point after each round; a point is raised in the round of its first status.
_STATUSES = [
    ["open", "open", "open", "open"],
    ["resolved", "resolved", "partial", "resolved", "open"],
    ["resolved", "resolved", "resolved", "resolved", "resolved"],
]
_QUALITY = [4, 7, 9]
_ANSWER = """**No. Keep one service, and draw the boundaries inside it first.**

Four people cannot run several services well: on-call duty, tracing and versioned interfaces \
cost more than \
the waiting they remove. Most of that waiting comes from the pipeline, so fix it there.

1. Give each module its own schema, and let a test forbid queries across schemas.
2. Run only the tests of the module that changed.
3. Split a module off when, for a quarter, it needs four times the machines of the rest, its \
releases wait \
more than a day for others, or it causes more than half of the incidents."""
_RATING = {
    "correctness": 9,
    "completeness": 8,
    "clarity": 9,
    "depth": 7,
    "justification": "Clear limits; says little about how to move the data.",
    "would_benefit_from_finetune": False,
}


def monolith() -> Script:
    """Return a script that answers each call of the debate."""

    def script(request: Request) -> str:
        role = re.findall(r"You are the (\w+)", request.instructions)[0].lower()
        found = re.search(r"Round (\d) of at most", request.user)
        number = int(found[1]) if found else 0
        if role == "proposer":
            return _PROPOSALS[number - 1]
        if role == "skeptic":
            return _block(request, _CRITIQUES[number - 1], _decided(number))
        return _block(request, "Rated.", _RATING) if role == "judge" else _ANSWER

    return script


def _decided(number: int) -> dict[str, Any]:
    before = _STATUSES[number - 2] if number > 1 else []
    points = [
        {
            "id": f"S{at + 1}" if at < len(before) else "",
            "severity": _POINTS[at][0],
            "status": status,
            "text": _POINTS[at][1],
        }
        for at, status in enumerate(_STATUSES[number - 1])
        if at >= len(before) or before[at] != "resolved"
    ]
    return {"ready": number == 3, "score": _QUALITY[number - 1], "points": points}


def _block(request: Request, text: str, data: dict[str, Any]) -> str:
    block = json.dumps({"nonce": nonce_of(request), **data})
    return f"{text}\n\n```json\n{block}\n```"
