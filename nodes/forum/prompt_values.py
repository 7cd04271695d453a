from collections.abc import Callable

from contend.graph.readings import Conviction
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState, turns_of
from contend.nodes.prompting.answers import answers_of, label_of
from contend.nodes.rounds import still_active


def others_who_answered(state: DebateState, settings: DebateSettings, seat_id: str) -> list[str]:
    others = [seat for seat in still_active(state, settings) if seat != seat_id]
    return [seat for seat in others if answers_of(state, seat)]


def other_labels(state: DebateState, settings: DebateSettings, seat_id: str) -> str:
    others = others_who_answered(state, settings, seat_id)
    return ", ".join(label_of(state, settings, each) for each in others) or "nobody who has spoken"


def concessions_so_far(state: DebateState, settings: DebateSettings, seat_id: str) -> str:
    not_spoken = [] if answers_of(state, seat_id) else ["You have not spoken so far."]
    left = [
        f"{label_of(state, settings, each.seat)} conceded to "
        f"{label_of(state, settings, each.convinced_by)} in round {each.round}."
        for each in state.get("eliminations", [])
    ]
    return " ".join(left + not_spoken)


def own_concession(state: DebateState, seat_id: str, fence: Callable[[str, str], str]) -> str:
    """Return a prompt section with the argument and quote of the seat's last concession."""
    claim, _ = _last_concession(state, seat_id)
    given = {"Argument": claim.argument, "Quote": claim.quote}
    lines = [f"{name}: {text}" for name, text in given.items() if text]
    said = fence("concession", "\n".join(lines))
    return f"## What you said\n{said}" if lines else ""


def _last_concession(state: DebateState, seat_id: str) -> tuple[Conviction, str]:
    last = [turn for turn in turns_of(state, "conviction_check") if turn.seat == seat_id][-1]
    claim = last.assessment
    if not isinstance(claim, Conviction) or claim.convinced_by is None:
        raise ValueError(f"{seat_id} has conceded to nobody")
    return claim, claim.convinced_by


def missing_support(state: DebateState, settings: DebateSettings, seat_id: str) -> str:
    claim, conceded_to = _last_concession(state, seat_id)
    whom = label_of(state, settings, conceded_to)
    missing = (
        f"the words you quoted do not appear in what {whom} said"
        if claim.quote
        else "you quoted no words of the argument that convinced you"
    )
    if not claim.argument:
        missing = "you named no argument that convinced you"
    return f"You have just said that you concede to {whom}, but {missing}."
