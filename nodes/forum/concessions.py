from collections.abc import Mapping, Sequence

from contend.graph.readings import Conviction
from contend.graph.state import DebateState

# Why a seat stays although it conceded, in the order of the rules.
_MORE_NOW = "more conceded to it than to any other of them"
_MORE_BEFORE = "of those conceded to as often, it had convinced more before"
_FIRST_SEATED = "of those conceded to as often, it sits first at the table"


def seats_that_stay(
    concessions: Mapping[str, str], active: Sequence[str], credit: Mapping[str, int]
) -> dict[str, str]:
    """Choose one seat to stay in each circle of concessions. Return the reasons by seat."""
    if not concessions:
        return {}
    groups = [active] if len(concessions) == len(active) else _circles(concessions)
    return dict(_stays(group, concessions, credit) for group in groups)


def _stays(
    seats: Sequence[str], concessions: Mapping[str, str], credit: Mapping[str, int]
) -> tuple[str, str]:
    kept = _most_conceded(seats, concessions, credit)
    now = list(concessions.values())
    equals = [seat for seat in seats if now.count(seat) == now.count(kept)]
    if equals == [kept]:
        return kept, _MORE_NOW
    before = [seat for seat in equals if credit.get(seat, 0) == credit.get(kept, 0)]
    return kept, _MORE_BEFORE if before == [kept] else _FIRST_SEATED


def is_supported(conviction: Conviction) -> bool:
    return bool(conviction.argument) and conviction.quote_found


def upheld_concession(answers: Sequence[object], *, verify: bool) -> str | None:
    """Return the seat that every answer concedes to, or None if they disagree."""
    said = [each for each in answers if isinstance(each, Conviction)]
    named = {each.convinced_by for each in said}
    if not said or len(said) < len(answers) or len(named) > 1:
        return None
    # An unsupported answer is not enough, unless the seat repeats it when asked again.
    enough = not verify or len(said) > 1 or is_supported(said[0])
    return named.pop() if enough else None


def most_conceded_to(state: DebateState, seats: Sequence[str]) -> str:
    return _most_conceded(seats, {}, count_concessions(state))


def count_concessions(state: DebateState, before: int | None = None) -> dict[str, int]:
    counts: dict[str, int] = {}
    for each in state.get("eliminations", []):
        if before is None or each.round < before:
            counts[each.convinced_by] = counts.get(each.convinced_by, 0) + 1
    return counts


def _most_conceded(
    seats: Sequence[str], concessions: Mapping[str, str], credit: Mapping[str, int]
) -> str:
    now = list(concessions.values())
    return max(seats, key=lambda seat: (now.count(seat), credit.get(seat, 0), -seats.index(seat)))


def _circles(concessions: Mapping[str, str]) -> list[list[str]]:
    circles: list[list[str]] = []
    for start in concessions:
        seen = [start]
        while (following := concessions.get(seen[-1])) is not None and following not in seen:
            seen.append(following)
        if following == start and not any(start in circle for circle in circles):
            circles.append([seat for seat in concessions if seat in seen])
    return circles
