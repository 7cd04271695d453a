import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files

from contend.debates.exports import wording
from contend.debates.exports.markdown import sections_of
from contend.debates.exports.safe_html import to_html
from contend.debates.record import StoredDebate

_SECTION = re.compile(r"(#{2,3}) ([^\n]*)(?:\n\n(.*))?", re.DOTALL)
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_COLOURS = 8


def to_page(debate: StoredDebate) -> str:
    names = [seat.name for seat in debate.as_state().get("seats", [])]
    asked = f"<p>{escape(debate.question)}</p>\n" if debate.title else ""
    header = f'<h1>{escape(debate.shown_title)}</h1>\n{asked}<p class="facts">{_facts(debate)}</p>'
    body = "\n".join(_section(text, names) for text in sections_of(debate))
    footer = f"Debate {escape(debate.id)}, exported by Contend"
    return html_page(" ".join(debate.shown_title.split())[:120], header, body, footer)


def html_page(title: str, header: str, body: str, footer: str, more_style: str = "") -> str:
    style = (files(__package__) / "page.css").read_text("utf-8")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{style}{more_style}</style>
</head>
<body>
<main>
<header>
{header}
</header>
{body}
</main>
<footer>{footer}</footer>
</body>
</html>
"""


def _facts(debate: StoredDebate) -> str:
    record = debate.as_record()
    facts = [
        debate.protocol.capitalize(),
        debate.status,
        wording.local_time(debate.created_at),
        f"{record.total_rounds} round{'' if record.total_rounds == 1 else 's'}",
        f"{wording.usage_words(record.usage.model_dump())} tokens",
        wording.duration(record.timing.total_ms),
        *dict.fromkeys(record.models.values()),
    ]
    return "".join(f"<span>{escape(each)}</span>" for each in facts if each)


def _section(text: str, names: Sequence[str]) -> str:
    found = _SECTION.fullmatch(text)
    if found is None:
        return f'<aside class="notices">{to_html(text)}</aside>'
    marks, title, body = found[1], found[2], to_html(found[3] or "")
    if marks == "###":
        return (
            f'<article class="turn {_colour(title, names)}"><h3>{_heading(title)}</h3>'
            f"{body}</article>"
        )
    if not found[3]:
        return f"<h2>{_heading(title)}</h2>"
    kind = "answer" if title == "Answer" else "card"
    return f'<section class="{kind}"><h2>{_heading(title)}</h2>{body}</section>'


def _heading(title: str) -> str:
    html = to_html(title)
    return (
        html.removeprefix("<p>").removesuffix("</p>\n") if html.startswith("<p>") else escape(title)
    )


def _colour(title: str, names: Sequence[str]) -> str:
    speaker = next((at for at, name in enumerate(names) if title.startswith(name)), len(names))
    return f"seat-{speaker % _COLOURS}"
