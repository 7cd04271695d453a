from typing import Any

from rich.table import Table
from rich.text import Text

from contend.cli import database
from contend.cli.view.console import print_message, stdout, write_json
from contend.cli.view.format import one_line
from contend.debates.exports.wording import duration, local_time, usage_words
from contend.debates.listing import Filter
from contend.debates.record import StoredDebate
from contend.debates.repository import Repository

_NARROWEST_TABLE, _WIDEST_TABLE = 150, 200
_STATUS_STYLES = {"done": "success", "failed": "error", "running": "running"}
_WHOLE = {"ID": 8, "Started": 16, "Status": 11}
_COLUMNS = (
    *("ID", "Started", "Status", "Protocol", "Rounds", "Stopped by", "Score", "Tokens", "Time"),
)


def print_list(limit: int, search: str, *, as_json: bool) -> None:
    debates: list[dict[str, Any]] = []
    if not database.is_empty():
        with database.records() as records:
            database.adopt_if_any(records)
            debates = [_summary(debate) for debate in _found(records, limit, search)]
    if as_json:
        write_json(debates)
    elif not debates and search:
        print_message(f"No debate has '{search}' in its question, title or answer.")
    elif not debates:
        print_message('No debates yet. Start one with: contend ask "..."')
    elif stdout(widest=_WIDEST_TABLE).width >= _NARROWEST_TABLE:
        _print_table(debates)
    else:
        for debate in debates:
            _print_two_lines(debate)


def _found(records: Repository, limit: int, search: str) -> list[StoredDebate]:
    if search:
        page = records.search(Filter(words=search), limit)
        return [records.find(each.id, with_turns=False) for each in page.debates]
    return records.newest(limit, database.print_skipped)


def _summary(debate: StoredDebate) -> dict[str, Any]:
    state = debate.as_state()
    rated, record = state.get("auto_score"), state.get("trace") or {}
    return {
        "id": debate.id,
        "created_at": debate.created_at,
        "updated_at": debate.updated_at,
        "status": debate.status,
        "protocol": debate.protocol,
        "rounds": state.get("round", 0),
        "stop_reason": debate.stop_reason,
        "auto_score": rated.score if rated else None,
        "user_rating": debate.user_rating,
        "demonstration": debate.demonstration,
        "usage": record.get("usage"),  # missing until the debate has finished
        "total_ms": record["timing"]["total_ms"] if record else None,
        "question": debate.question,
        "title": debate.title,
        "ran_on": debate.ran_on,
    }


def _print_table(debates: list[dict[str, Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in _COLUMNS:
        # Never shortened, because part of an id, a date or a status is useless.
        table.add_column(heading, no_wrap=True, min_width=_WHOLE.get(heading))
    table.add_column("Question", no_wrap=True, overflow="ellipsis", ratio=1)
    for debate in debates:
        table.add_row(
            debate["id"][:8],
            local_time(debate["created_at"]),
            Text(debate["status"], style=_STATUS_STYLES.get(debate["status"], "warning")),
            debate["protocol"],
            str(debate["rounds"]),
            debate["stop_reason"] or "-",
            _score(debate),
            *_took(debate),
            Text(one_line(_subject(debate), 200)),
        )
    stdout(widest=_WIDEST_TABLE).print(table)


def _subject(debate: dict[str, Any]) -> str:
    subject: str = debate["title"] or debate["question"]
    return f"{subject} (on {debate['ran_on']})" if debate["ran_on"] else subject


def _took(debate: dict[str, Any]) -> tuple[str, str]:
    if debate["usage"] is None:
        return "-", "-"
    return usage_words(debate["usage"]), duration(debate["total_ms"])


def _print_two_lines(debate: dict[str, Any]) -> None:
    screen, status = stdout(), debate["status"]
    facts = [
        Text(debate["id"][:8], style="heading"),
        Text(status, style=_STATUS_STYLES.get(status, "warning")),
        *map(Text, (local_time(debate["created_at"]), f"round {debate['rounds']}")),
        Text(f"score {_score(debate)}"),
    ]
    for line in _packed(facts, screen.width):
        screen.print(line, soft_wrap=True)
    more = [", ".join(_took(debate))] if debate["usage"] else []
    for text in (_subject(debate), *more):
        screen.print(Text(f"  {one_line(text, screen.width - 4)}"), soft_wrap=True)


def _packed(facts: list[Text], width: int) -> list[Text]:
    lines = [facts[0]]
    for fact in facts[1:]:
        if lines[-1].cell_len + 2 + fact.cell_len <= width:
            lines[-1] = Text.assemble(lines[-1], "  ", fact)
        else:
            lines.append(Text.assemble("  ", fact))
    return lines


def _score(debate: dict[str, Any]) -> str:
    if debate["user_rating"] is not None:
        return f"{debate['user_rating']} (yours)"
    if debate["auto_score"] is None:
        return "-"
    return f"{debate['auto_score']:g}{' (demo)' if debate['demonstration'] else ''}"
