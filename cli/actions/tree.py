from typing import Any

from rich.text import Text
from rich.tree import Tree

from contend.cli import database
from contend.cli.view.console import stdout, write_json
from contend.cli.view.format import one_line
from contend.debates.family import Family, Origin
from contend.debates.repository import Repository
from contend.graph.errors import BadInput

_WIDEST = 160


def print_tree(reference: str, *, as_json: bool) -> None:
    with database.existing(reference) as (records, debate):
        family = records.family(debate.id)
        shown = _node_of(records, family, family.eldest, None)
    if as_json:
        write_json(shown)
    else:
        stdout(widest=_WIDEST).print(_draw(shown, debate.id))


def _node_of(
    records: Repository, family: Family, debate_id: str, origin: Origin | None
) -> dict[str, Any]:
    try:
        debate = records.find(debate_id, with_turns=False)
    except BadInput:  # the oldest debate of a family may have been deleted
        about: dict[str, Any] = {"status": "deleted", "answer": ""}
    else:
        about = {"status": debate.status, "answer": debate.state.get("final_answer", "")}
    place = None if origin is None else f"{origin.round}:{origin.node}"
    forks = [
        _node_of(records, family, each, family.origins[each])
        for each in family.children().get(debate_id, [])
    ]
    edited = origin.edited if origin else None
    return {"id": debate_id, **about, "forked_at": place, "edited": edited, "forks": forks}


def _draw(node: dict[str, Any], current: str, parent: Tree | None = None) -> Tree:
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(node["id"][:8], style="heading" if node["id"] == current else "")
    line.append(f"  {node['status']}", style="muted")
    if node["forked_at"]:
        where = f"turn {node['edited']} edited" if node["edited"] else f"after {node['forked_at']}"
        line.append(f"  {where}", style="muted")
    line.append(f"  {one_line(node['answer'], _WIDEST)}")
    drawn = parent.add(line) if parent else Tree(line)
    for each in node["forks"]:
        _draw(each, current, drawn)
    return drawn
