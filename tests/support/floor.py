"""Scripted speakers for moderated debates, and settings that use them."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contend.graph.settings import ModeratedSettings
from tests.support.scripted import Cast, Line, Played, Sent, play

CRITERIA = (
    "logical_coherence",
    "evidence_quality",
    "responsiveness",
    "persuasiveness",
    "rule_adherence",
)
# Words by which the prompts for the parts of a moderated debate can be recognised.
SIGNS = {
    "Score each of these statements": "stage",
    "List the claims": "claims",
    "Check this one claim": "check",
    "Propose ": "positions",
    "Sum up this round": "summary",
    "Close the floor": "end",
    "Write the summary of the debate": "final",
    "Call on ": "request",
    "Give your opening statement": "opening",
    "Bring one argument": "argument",
    "Restate the point you attack": "rebuttal",
    "Give your closing statement": "closing",
    "Correct what is contradicted": "correction",
}
TOPIC = "Does open source make software safer?"
HELD = {"Ann": "It makes it safer.", "Ben": "It makes it no safer.", "Cyd": "It depends on money."}


def moderated_settings(
    names: Sequence[str] = ("Ann", "Ben"), positions: Any = None, **changes: Any
) -> ModeratedSettings:
    """Return settings with a scripted model in every seat, named after the seat."""
    laid = [
        {"name": name, "position": HELD[name], "model": f"scripted:{name.lower()}"}
        for name in names
    ]
    usual: dict[str, Any] = {"positions": laid if positions is None else positions}
    usual |= {f"{role}_model": f"scripted:{role}" for role in ("moderator", "judge", "advocate")}
    usual |= {"fact_checker_model": "scripted:checker"}
    usual |= {"embedding_model": "scripted:embed", "templates": False}
    return ModeratedSettings.model_validate(usual | changes)


def asked_for(sent: Sent) -> str:
    """Return what a speaker is asked for, judging by its prompt or by the schema to fill in."""
    if sent.schema is not None:
        return sent.schema.__name__.removesuffix("Block").lower()
    return next(what for sign, what in SIGNS.items() if sign in sent.user)


def with_block(text: str, **data: Any) -> Callable[[Sent], str]:
    """Return a script for a speech that ends with the call's control block."""
    return lambda sent: f"{text}\n\n```json\n{json.dumps({'nonce': sent.nonce, **data})}\n```"


def ruled(breach: str = "none", ruling: str = "", text: str = "") -> Callable[[Sent], str]:
    """Return a script for a moderator's turn that reviews the last statement if asked to."""

    def say(sent: Sent) -> str:
        said = text or f"The moderator's {asked_for(sent)}."
        if "The statement to review" not in sent.user:
            return said
        return with_block(said, breach=breach, ruling=ruling)(sent)

    return say


def marks_for(sent: Sent, mark: Callable[[str, str], float]) -> list[dict[str, Any]]:
    """Return scores for each statement shown; `mark` gives the score for a text and a criterion."""
    shown = re.findall(r"### (S\d+): [^\n]+\n<[^\n]+>\n(.*?)\n</", sent.user, re.DOTALL)
    return [
        {"statement": number} | {name: mark(text, name) for name in CRITERIA}
        for number, text in shown
    ]


def scoring(mark: Callable[[str, str], float] = lambda _text, _name: 6) -> Callable[[Sent], str]:
    """Return a script for a judge that scores statements by what they say."""
    return lambda sent: with_block("My marks.", scores=marks_for(sent, mark))(sent)


def floor_cast(**lines: Mapping[str, Line]) -> Cast:
    """Return speakers who say who they are and what they were asked for.

    To let a seat say something else, give its lines by request: `ann={"opening": ...}`.
    """

    def speaker(name: str) -> Callable[[Sent], str]:
        said: dict[str, Line] = {
            **dict.fromkeys(("request", "summary", "end"), ruled()),
            "positions": with_block("I propose two.", positions=["It does.", "It does not."]),
            "final": "The summary of the debate.",
            "claims": with_block("There are none.", claims=[]),
            "stage": scoring(),
            **lines.get(name, {}),
        }

        def say(sent: Sent) -> str:
            line = said.get(asked_for(sent), f"{name.capitalize()}'s {asked_for(sent)}.")
            return line if isinstance(line, str) else line(sent)

        return say

    seats = ("ann", "ben", "cyd", "moderator", "judge", "checker", "advocate")
    return Cast(**{name: speaker(name) for name in seats})


async def debate(cast: Cast | None = None, given: Any = TOPIC, **changes: Any) -> Played:
    """Run a moderated debate with the scripted cast."""
    saver, control = changes.pop("saver", None), changes.pop("control", None)
    settings = moderated_settings(**changes)
    return await play(cast or floor_cast(), given, saver=saver, control=control, settings=settings)


def told(played: Played) -> list[str]:
    """Return a short form of each turn, such as `ann argument 2`."""
    return [f"{turn.seat} {turn.phase} {turn.round}" for turn in played.turns]
