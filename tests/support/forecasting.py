"""A scripted forecasting panel."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contend.graph.forecast_contract.terms import ROLES
from contend.graph.settings import ForecastSettings
from tests.support.model_server import Reply, Request
from tests.support.scripted import Cast, Lines, Played, Sent, as_sent, play

QUESTION = "Will the bridge open before May?"
OUTCOMES = [
    {"id": "yes", "label": "It opens", "description": ""},
    {"id": "no", "label": "It does not", "description": ""},
]
PRECEDENTS = [
    {
        "event": "The north bridge",
        "date": "1998-04",
        "outcome": "opened late",
        "relevance": "same builder",
        "similarity": 0.8,
    },
    {
        "event": "The toll bridge",
        "date": "2011",
        "outcome": "opened early",
        "relevance": "same river",
        "similarity": 0.5,
    },
]
# The probability that each role gives to `yes` in rounds 1, 2 and 3.
YES: dict[str, Sequence[float]] = {
    "optimist": (0.9, 0.8, 0.8),
    "pessimist": (0.2, 0.3, 0.4),
    "contrarian": (0.4, 0.4, 0.5),
    "historian": (0.6, 0.6, 0.6),
    "judge": (0.5, 0.6, 0.7),
}
VERDICT = 0.7

RESUME: Any = object()
"""Given instead of a question, to continue from the checkpoint."""

Change = Callable[[dict[str, Any]], dict[str, Any]]


def request(**changes: Any) -> dict[str, Any]:
    """Return a small request in its published format."""
    context = {"task": {"question": QUESTION}, "outcomes": OUTCOMES}
    return {"task_id": "task-7", "prediction_context": context | changes}


def forecast_settings(**changes: Any) -> ForecastSettings:
    """Return settings with a scripted model in every seat, named after its role."""
    usual: dict[str, Any] = {f"{role}_model": f"scripted:{role}" for role in ROLES}
    return ForecastSettings.model_validate(usual | {"embedding_model": "scripted:embed"} | changes)


def asked_for(sent: Sent) -> str:
    """Return what a call asks for: an argument, its numbers, scores, a verdict, ..."""
    signs = {
        "Score this argument": "score",
        "All rounds are over": "verdict",
        "was found too weak": "stronger",
        "could not be read. State them": "numbers",
        "cites fewer than two precedents": "precedents",
        "cites no earlier point by its id": "references",
    }
    return next((what for sign, what in signs.items() if sign in sent.user), "argument")


def round_of(sent: Sent) -> int:
    """Return the round that a call belongs to."""
    found = re.search(r"Round (\d+) of \d+: \w+\.|argument of round (\d+)", sent.user)
    return int(found.group(1) or found.group(2)) if found else 0


def scored_role(sent: Sent) -> str:
    """Return the role whose argument a judge is asked to score."""
    found = re.search(r"The (\w+)'s argument of round", sent.user)
    return found.group(1) if found else ""


def argument_block(role: str, number: int, yes: float | None = None) -> dict[str, Any]:
    """Return the control block that a role writes in a round."""
    p = YES[role][number - 1] if yes is None else yes
    block: dict[str, Any] = {
        "outcome": "yes" if p >= 0.5 else "no",
        "probabilities": {"yes": p, "no": round(1 - p, 3)},
        "confidence": 0.6,
        "point": f"The {role}'s point of round {number}.",
        "evidence": [f"{role} source {number}"],
    }
    if number > 1:
        other = "pessimist" if role != "pessimist" else "optimist"
        block |= {
            "rebuts": [other],
            "refers_to": [f"{other[0].upper()}{number - 1}", f"{role[0].upper()}1"],
        }
    if role == "historian" and number == 1:
        block |= {"precedents": PRECEDENTS}
    return block


def fenced(sent: Sent, block: Mapping[str, Any], words: str) -> str:
    return f"{words}\n\n```json\n{json.dumps({'nonce': sent.nonce, **block})}\n```"


def arguing(role: str, change: Change = lambda block: block) -> Callable[[Sent], str]:
    """Return a script for a role that argues with the numbers in YES."""

    def say(sent: Sent) -> str:
        number = round_of(sent)
        block = change(argument_block(role, number))
        return fenced(sent, block, f"The {role} argues in round {number}.")

    return say


def scores(logic: float = 0.7, evidence: float = 0.6, novelty: float = 0.5) -> dict[str, Any]:
    return {
        "logical_strength": logic,
        "evidence_quality": evidence,
        "novelty": novelty,
        "reason": "Sound.",
    }


def verdict(yes: float = VERDICT) -> dict[str, Any]:
    return {
        "probabilities": {"yes": yes, "no": round(1 - yes, 3)},
        "confidence": 0.8,
        "insights": [
            {
                "insight": "Spring delays matter most.",
                "point": "P2",
                "impact": "high",
                "outcomes": ["no"],
            }
        ],
    }


def judging(
    score: Callable[[Sent], dict[str, Any]] = lambda _: scores(),
    last: Callable[[Sent], str] | None = None,
) -> Callable[[Sent], str]:
    """Return a script for a judge that argues, scores every argument and gives a verdict."""

    def say(sent: Sent) -> str:
        match asked_for(sent):
            case "score":
                return fenced(sent, score(sent), "Sound.")
            case "verdict":
                if last:
                    return last(sent)
                return fenced(sent, verdict(), "It will probably open.")
        return arguing("judge")(sent)

    return say


def panel(**lines: Lines) -> Cast:
    """Return five roles that argue to the end, unless given other lines."""
    usual: dict[str, Lines] = {role: arguing(role) for role in ROLES if role != "judge"}
    return Cast(**usual | {"judge": judging()} | lines)


async def forecasted(cast: Cast | None = None, given: Any = None, **changes: Any) -> Played:
    """Run a whole forecast."""
    options = {name: changes.pop(name) for name in ("saver", "control") if name in changes}
    asked = {"question": QUESTION, "request": request()} if given is None else given
    asked = None if given is RESUME else asked
    return await play(cast or panel(), asked, settings=forecast_settings(**changes), **options)


def forecasters(yes: Callable[[str, int], float] | None = None, last: float = VERDICT) -> Any:
    """Return the panel as a script for the model server; system prompts tell the roles apart."""

    def script(served: Request) -> Reply:
        sent = as_sent(served)
        found = re.search(r"You are the (\w+) of the panel", served.instructions)
        role = found.group(1).lower() if found else ""
        what, number = asked_for(sent), round_of(sent)
        if "Somebody asks for a forecast" in served.user:
            return Reply(json.dumps({"outcomes": OUTCOMES, "due": "2027-05-01"}))
        if what == "score":
            return Reply(fenced(sent, scores(), "Sound."))
        if what == "verdict":
            return Reply(fenced(sent, verdict(last), "It will probably open."))
        block = argument_block(role, number, yes(role, number) if yes else None)
        return Reply(fenced(sent, block, f"The {role} argues in round {number}."))

    return script
