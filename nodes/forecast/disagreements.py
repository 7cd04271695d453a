import math
import re
from collections.abc import Iterable, Iterator, Sequence

from contend.graph.forecast_contract.request import Outcome
from contend.graph.forecast_contract.result import Disagreement, Position
from contend.graph.readings import Dispute, VerdictReading
from contend.nodes.forecast import numbers
from contend.nodes.forecast.arguments import ScoredArgument, latest_statements, of_round

Arguments = Sequence[ScoredArgument]

# Words without punctuation, but with the signs that tell "-2" from "2" and "< 2" from "> 2".
_WORD = re.compile(r"\w+|(?<!\w)-(?=\d)|[−+<>=]")


def disputable(outcomes: Sequence[Outcome]) -> Sequence[Outcome]:
    """Return the outcomes to compare: all, or only the first of two."""
    return outcomes[:1] if len(outcomes) == 2 else outcomes


def key_disagreements(said: Arguments, outcomes: Sequence[Outcome]) -> Iterator[str]:
    for outcome in outcomes:
        if _disagree(said, outcome.id):
            low, high = _extremes(said, outcome.id)
            apart = ", ".join(f"{e.role} {_probability(e, outcome.id):.0%}" for e in (high, low))
            yield f"{outcome.label} ({outcome.id}): {apart}"
    for each in said:
        if each.reading.rebuts:
            yield f"{each.role} against {', '.join(each.reading.rebuts)}: {each.reading.point}"


def disagreement_map(
    kept: Arguments, outcomes: Sequence[Outcome], verdict: VerdictReading | None
) -> tuple[Disagreement, ...]:
    """Return disagreements on the judge's topics, then on outcomes that no topic covers."""
    named = [_by_topic(kept, each) for each in _merge_topics(verdict.disputes if verdict else ())]
    topics = [each for each in named if len(each.positions) > 1]
    divided = (
        _by_outcome(kept, outcome)
        for outcome in disputable(outcomes)
        if _ever_disagree(kept, outcome.id)
        and not any(_ever_disagree(_said_by(kept, topic), outcome.id) for topic in topics)
    )
    return (*topics, *divided)


def _merge_topics(disputes: Iterable[Dispute]) -> Iterable[Dispute]:
    merged: dict[object, Dispute] = {}
    for each in disputes:
        key = _topic_words(each.topic) or each.topic
        known = merged.setdefault(key, each)
        points = tuple(dict.fromkeys((*known.points, *each.points)))
        update = {"points": points, "resolved": known.resolved and each.resolved}
        merged[key] = known.model_copy(update=update)
    return merged.values()


def _topic_words(topic: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(topic.casefold()))


def _by_topic(kept: Arguments, dispute: Dispute) -> Disagreement:
    latest = {each.role: each for each in kept if each.point_id in dispute.points}
    positions = tuple(_position(each, each.reading.point) for each in latest.values())
    return Disagreement(topic=dispute.topic, positions=positions, resolved=dispute.resolved)


def _by_outcome(kept: Arguments, outcome: Outcome) -> Disagreement:
    """Return the disagreement about an outcome. Its topic quotes the two points furthest apart."""
    low, high = max(
        (_extremes(said, outcome.id) for said in _rounds(kept) if _disagree(said, outcome.id)),
        key=lambda extremes: (
            _probability(extremes[1], outcome.id) - _probability(extremes[0], outcome.id)
        ),
    )
    latest = [each for each in latest_statements(kept).values() if _states(each, outcome.id)]
    # Resolved only if every role still gives it a probability.
    ever = {each.role for each in kept if _states(each, outcome.id)}
    agree = not _disagree(latest, outcome.id)
    return Disagreement(
        topic=f"{outcome.label}: “{high.reading.point}” or “{low.reading.point}”",
        positions=tuple(
            _position(each, f"{_probability(each, outcome.id):.0%}: {each.reading.point}")
            for each in latest
        ),
        resolved=agree and ever <= {each.role for each in latest},
    )


def _position(said: ScoredArgument, stance: str) -> Position:
    confidence, score = said.reading.stated.confidence, said.composite
    known = [each for each in (confidence, score) if each is not None]
    strength = math.prod(known) if known else None
    return Position(role=said.role, stance=stance, strength=strength)


def _said_by(kept: Arguments, topic: Disagreement) -> Arguments:
    roles = {each.role for each in topic.positions}
    return [each for each in kept if each.role in roles]


def _ever_disagree(kept: Arguments, outcome: str) -> bool:
    return any(_disagree(said, outcome) for said in _rounds(kept))


def _rounds(kept: Arguments) -> list[Arguments]:
    return [of_round(kept, number) for number in sorted({each.turn.round for each in kept})]


def _disagree(said: Arguments, outcome: str) -> bool:
    stated = [each.reading.stated.probabilities for each in said]
    return numbers.spread(stated, outcome) >= numbers.DISAGREEMENT


def _extremes(said: Arguments, outcome: str) -> tuple[ScoredArgument, ScoredArgument]:
    stating = [each for each in said if _states(each, outcome)]
    return (
        min(stating, key=lambda each: _probability(each, outcome)),
        max(stating, key=lambda each: _probability(each, outcome)),
    )


def _states(said: ScoredArgument, outcome: str) -> bool:
    return outcome in said.reading.stated.probabilities


def _probability(said: ScoredArgument, outcome: str) -> float:
    return said.reading.stated.probabilities[outcome]
