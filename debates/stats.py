from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from contend.debates.loading import Report, skip_silently
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository
from contend.graph.errors import DamagedDebate
from contend.graph.record import DebateRecord, DraftVote
from contend.nodes.drafts import draft_vote


@dataclass(frozen=True)
class CountedMean:
    n: int
    mean: float | None


@dataclass(frozen=True)
class ProtocolStats:
    """Totals for one protocol's debates; scores and ratings exclude the demo model."""

    protocol: str
    debates: int
    done: int
    failed: int
    ratings: CountedMean
    scores: CountedMean
    with_vote: int
    kept: int
    changed: int
    no_majority: int
    quality_kept: CountedMean
    quality_changed: CountedMean
    not_debated: int
    calls_saved: int


@dataclass(frozen=True)
class _ReadDebate:
    record: DebateRecord
    drafts: DraftVote | None


def read_all(records: Repository, report: Report = skip_silently) -> Iterator[StoredDebate]:
    for debate_id in records.ids():
        try:
            yield records.find(debate_id)
        except DamagedDebate as damaged:
            report(damaged)


def sum_up(debates: Iterable[StoredDebate]) -> list[ProtocolStats]:
    by_protocol: dict[str, list[_ReadDebate]] = {}
    for debate in debates:
        record = debate.as_record()
        # The records of earlier releases have no vote.
        found = _ReadDebate(record, record.drafts or draft_vote(debate.as_state()))
        by_protocol.setdefault(debate.protocol, []).append(found)
    return [_stats(protocol, by_protocol[protocol]) for protocol in sorted(by_protocol)]


def _stats(protocol: str, found: Sequence[_ReadDebate]) -> ProtocolStats:
    done = [each for each in found if each.record.status == "done"]
    voted = [each for each in done if each.drafts]
    kept, changed, tied = (
        [each for each in voted if each.drafts and each.drafts.changed is fate]
        for fate in (False, True, None)
    )
    gated = [each.record.stop for each in done if each.record.stop_reason == "drafts_agree"]
    return ProtocolStats(
        protocol=protocol,
        debates=len(found),
        done=len(done),
        failed=sum(each.record.status == "failed" for each in found),
        ratings=_mean(each.record.user_rating for each in done),
        scores=_mean(
            each.record.auto_score.score
            for each in done
            if each.record.auto_score and not each.record.demonstration
        ),
        with_vote=len(voted),
        kept=len(kept),
        changed=len(changed),
        no_majority=len(tied),
        quality_kept=_quality(kept),
        quality_changed=_quality(changed),
        not_debated=len(gated),
        calls_saved=sum(stop.calls_saved or 0 for stop in gated if stop),
    )


def _quality(found: Iterable[_ReadDebate]) -> CountedMean:
    return _mean(each.record.quality_score for each in found if not each.record.demonstration)


def _mean(values: Iterable[float | None]) -> CountedMean:
    known = [value for value in values if value is not None]
    return CountedMean(len(known), fmean(known) if known else None)
