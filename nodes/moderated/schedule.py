from collections.abc import Sequence
from typing import Literal

from contend.graph.phases import STATEMENTS, StepPhase
from contend.graph.readings import Adjustment
from contend.graph.settings.moderated import ADVOCATE, ModeratedSettings
from contend.graph.state import DebateState, Step, Turn
from contend.graph.values import Seat

MODERATOR = "moderator"


def schedule_for(state: DebateState, sides: Sequence[Seat]) -> list[Step]:
    ids = [side.id for side in sides]
    if state.get("stop"):
        return closings(ids)
    if state["round"] == 0:
        undecided = not all(side.position for side in sides)
        return [*([_moderator("positions")] if undecided else []), *openings(ids)]
    return argument_round(ids, state["round"])


def openings(sides: Sequence[str]) -> list[Step]:
    return [step for side in sides for step in _request_and_speech("opening", side)]


def argument_round(sides: Sequence[str], number: int) -> list[Step]:
    """Return a round's steps. With more than two sides, each side chooses whom to rebut."""
    if len(sides) == 2:
        first, second = sides
        exchanges = [*_exchange(first, second), *_exchange(second, first)]
    else:
        start = (number - 1) % len(sides)
        order = [*sides[start:], *sides[:start]]
        exchanges = [step for side in order for step in _request_and_speech("argument", side)]
        exchanges += [step for side in order for step in _request_and_speech("rebuttal", side)]
    return [*exchanges, _moderator("summary")]


def closings(sides: Sequence[str]) -> list[Step]:
    spoken = [step for side in sides for step in _request_and_speech("closing", side)]
    return [*spoken, _moderator("end")]


def _exchange(speaker: str, opponent: str) -> list[Step]:
    return [
        *_request_and_speech("argument", speaker),
        *_request_and_speech("rebuttal", opponent, against=speaker),
    ]


def _request_and_speech(phase: StepPhase, side: str, against: str | None = None) -> list[Step]:
    request = Step(phase="request", seat=MODERATOR, to=side, asks=phase)
    return [request, Step(phase=phase, seat=side, to=against)]


def _moderator(phase: StepPhase) -> Step:
    return Step(phase=phase, seat=MODERATOR)


def sides_of(state: DebateState) -> list[Seat]:
    return [seat for seat in state["seats"] if seat.role == ADVOCATE]


def statements_in(turns: Sequence[Turn]) -> list[Turn]:
    return [turn for turn in turns if turn.phase in STATEMENTS]


def adjustments_in(turns: Sequence[Turn]) -> list[tuple[Turn, Adjustment]]:
    return [(turn, turn.assessment) for turn in turns if isinstance(turn.assessment, Adjustment)]


def planned_rounds(settings: ModeratedSettings, turns: Sequence[Turn]) -> int:
    added = sum(made.change == "extend" for _, made in adjustments_in(turns))
    return settings.round_count + added


def possible_change(
    settings: ModeratedSettings, turns: Sequence[Turn], number: int
) -> Literal["extend", "cut"] | None:
    """Return `extend` after the last planned round, `cut` after earlier ones, or None."""
    planned = planned_rounds(settings, turns)
    if not settings.moderator_may_adjust:
        return None
    if number == planned:
        return "extend" if planned < settings.max_round_count else None
    return "cut" if number >= settings.min_round_count else None


def unreviewed_statement(turns: Sequence[Turn]) -> Turn | None:
    for turn in reversed(turns):
        if turn.role == MODERATOR:
            return None
        if turn.phase in STATEMENTS:
            return turn
    return None


def stages(turns: Sequence[Turn]) -> list[list[Turn]]:
    found: dict[tuple[bool, int], list[Turn]] = {}
    for turn in statements_in(turns):
        found.setdefault((turn.phase == "closing", turn.round), []).append(turn)
    return list(found.values())


def with_sides_reversed(stage: Sequence[Turn]) -> list[Turn]:
    """Reverse the order of the sides in a stage, keeping each rebuttal after its argument."""
    blocks: list[list[Turn]] = []
    for turn in stage:
        if turn.phase != "rebuttal" or not blocks:
            blocks.append([])
        blocks[-1].append(turn)
    if blocks and len(blocks[-1]) > 2:  # all sides argued before any rebutted
        arguments, rebuttals = stage[: len(blocks)], stage[len(blocks) :]
        return [*reversed(arguments), *reversed(rebuttals)]
    return [turn for block in reversed(blocks) for turn in block]
