import json
import re

from tests.support.model_server import Reply, Request, Script

_SENTENCE = (
    "The last comparable easing cycle began with the same mix of slower growth and falling energy "
    "prices, and the members who asked for patience then agreed within two meetings. "
)
_POINT = "Growth slowed while energy prices fell, as before the last three cuts of this bank."
_PRECEDENTS = [
    {
        "event": f"The easing of {year}",
        "date": f"{year}-03",
        "outcome": "the bank cut within two meetings",
        "relevance": "the same mix of prices and growth",
        "similarity": 0.7,
    }
    for year in (2001, 2019)
]


# How long an argument takes, in calls; argument and score together take two.
_PACE = {"optimist": 1.5, "pessimist": 0.5, "contrarian": 1.25, "historian": 0.75, "judge": 1.0}


def panel(delay: float) -> Script:
    def speak(request: Request) -> Reply:
        tag = re.findall(r'"nonce": "(\w+)"', request.text)
        block, words = _block(request), _words(request)
        said = f"{words}\n\n```json\n{json.dumps({'nonce': tag[-1] if tag else '', **block})}\n```"
        return Reply(said, delay=delay * _pace(request), chunk_size=400)

    return speak


def _pace(request: Request) -> float:
    """Score slow arguments quickly and fast arguments slowly, to reveal needless waiting."""
    if scored := re.search(r"The (\w+)'s argument of round", request.user):
        return 2 - _PACE[scored[1]]
    role = re.search(r"You are the (\w+) of", request.instructions)
    verdict = "All rounds are over" in request.user
    return 1.0 if verdict or role is None else _PACE[role[1].lower()]


def _words(request: Request) -> str:
    if "Score this argument" in request.user:
        return "It names its sources, and its last step does not quite follow."
    wanted = re.search(r"at most (\d+) words", request.user)
    count = int(wanted.group(1)) if wanted else 100
    sentences = -(-count // len(_SENTENCE.split())) - 1
    return (_SENTENCE * max(1, sentences)).strip()


def _block(request: Request) -> dict[str, object]:
    numbers = {
        "probabilities": {"cut": 0.5, "hold": 0.45, "raise": 0.05},
        "confidence": 0.6,
    }
    if "Score this argument" in request.user:
        return {
            "logical_strength": 0.7,
            "evidence_quality": 0.6,
            "novelty": 0.4,
            "reason": "Its last step does not quite follow.",
        }
    if "All rounds are over" in request.user:
        insight = {"insight": _POINT, "point": "C1", "impact": "high", "outcomes": ["cut"]}
        return {**numbers, "insights": [insight, insight]}
    block = {
        "outcome": "cut",
        **numbers,
        "point": _POINT,
        "evidence": ["The bank's own statement of October", "Two quarters of national accounts"],
    }
    if "opening" not in request.user:
        block |= {"rebuts": ["pessimist"], "refers_to": ["P1", "H1"]}
    if "You are the Historian" in request.instructions and "opening" in request.user:
        block |= {"precedents": _PRECEDENTS}
    return block
