from dataclasses import asdict

from contend.cli import database
from contend.cli.actions.export import write_document
from contend.cli.view.console import print_message, write_json
from contend.cli.view.format import counted
from contend.debates.exports.page import ExportPage, Part, Rows, Title, Words
from contend.debates.stats import CountedMean, ProtocolStats, read_all, sum_up


def print_stats(*, as_json: bool) -> None:
    found: list[ProtocolStats] = []
    if not database.is_empty():
        with database.records() as records:
            found = sum_up(read_all(records, database.print_skipped))
    if as_json:
        write_json([asdict(each) for each in found])
    elif not found:
        print_message('No debates yet. Start one with: contend ask "..."')
    else:
        write_document(ExportPage(_parts(found), {}).as_markdown(), None)


def _parts(found: list[ProtocolStats]) -> list[Part]:
    head = ("protocol", "debates", "done", "failed", "mean rating (n)", "mean score (n)")
    rows = [
        (
            each.protocol,
            str(each.debates),
            str(each.done),
            str(each.failed),
            _mean(each.ratings),
            _mean(each.scores),
        )
        for each in found
    ]
    return [Rows(head, rows), *_vote_parts(found), *_gate_parts(found)]


def _vote_parts(found: list[ProtocolStats]) -> list[Part]:
    voted = [each for each in found if each.with_vote]
    if not voted:
        note = (
            "No debate has short answers to compare. To get them, ask in the question for a final "
            "line `Answer: ...`."
        )
        return [Words(note)]
    head = ("protocol", "n", "vote kept", "changed", "no majority", "mean score, kept (n)")
    rows = [
        (
            each.protocol,
            str(each.with_vote),
            str(each.kept),
            str(each.changed),
            str(each.no_majority),
            _mean(each.quality_kept),
            _mean(each.quality_changed),
        )
        for each in voted
    ]
    headings = (*head, "mean score, changed (n)")
    about = (
        "How often the final answer matched the majority of the first answers, with mean scores:"
    )
    return [Title("First answers", 2), Words(about), Rows(headings, rows)]


def _gate_parts(found: list[ProtocolStats]) -> list[Part]:
    debates = sum(each.not_debated for each in found)
    saved = sum(each.calls_saved for each in found)
    if not debates:
        return []
    why = f"Ended immediately, because the first answers agreed: {counted(debates, 'debate')}."
    return [Words(f"{why} Calls saved: at least {saved}.")]


def _mean(value: CountedMean) -> str:
    return "–" if value.mean is None else f"{value.mean:.1f} ({value.n})"
