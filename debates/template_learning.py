import re
from collections.abc import Sequence
from functools import partial

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import BaseModel, Field, ValidationError

from contend.debates.record import StoredDebate
from contend.graph.errors import BadInput, ModelFailed
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState, turns_of
from contend.graph.values import Seat
from contend.models.calls import extract
from contend.models.providers.registry import check_models, open_models, parse_spec
from contend.models.retries import Listener
from contend.models.text import clean, shorten
from contend.nodes.prompting.points import points_of
from contend.nodes.prompting.values import fence_mark
from contend.prompts import fence, render
from contend.retrieval import templates

WELL_RATED = 8


class LearnedTemplate(BaseModel):
    """A reasoning template, as written by the model."""

    title: str = Field(description="A verb phrase of at most 60 characters.")
    kind: str = Field(description="One lower-case word for the kind of question.")
    use_when: list[str] = Field(description="A situation, then 5 to 8 questions.")
    tags: list[str] = Field(description="3 to 6 words.")
    steps: list[str] = Field(description="4 to 7 steps.")
    checks: list[str] = Field(description="3 to 5 checks.")
    typical_errors: list[str] = Field(description="3 to 5 errors.")


async def learn_template(
    debate: StoredDebate, settings: DebateSettings, model: str | None
) -> templates.Template:
    state = debate.as_state()
    writers = [turn.model for turn in turns_of(state, "synthesize") if turn.model]
    spoken = writers[-1] if writers else state["seats"][0].model
    seat = Seat(
        id="librarian",
        name="Librarian",
        role="librarian",
        model=str(parse_spec(model or spoken)),
        temperature=0.3,
    )
    async with open_models():
        await check_models([seat.model])
        messages = learning_prompt(state, debate.id)
        answered = await extract(seat, messages, LearnedTemplate, settings, Listener())
    return _template(seat, answered.result.block, answered.model)


def check_teaches(debate: StoredDebate) -> None:
    short = debate.id[:8]
    if debate.status != "done":
        raise BadInput(f"Debate {short} is {debate.status}; learn only from finished debates.")
    rating = debate.as_json()["quality_score"]
    if debate.user_rating is None and debate.demonstration:
        raise BadInput(
            f"Debate {short} used the demonstration model, whose scores are not meaningful. "
            f"If its answer is good, rate it: contend rate {short} {WELL_RATED}"
        )
    if rating is None or rating < WELL_RATED:
        rated = "not rated" if rating is None else f"rated {rating:g} of 10"
        raise BadInput(
            f"Debate {short} is {rated}; templates are learned from debates rated {WELL_RATED} or "
            f"more. Your own rating takes precedence: contend rate {short} RATING"
        )


def learning_prompt(state: DebateState, debate_id: str) -> list[BaseMessage]:
    mark = fence_mark(debate_id)
    data = partial(fence, mark=mark)
    points = [f"({point.status}) {point.text}" for point in points_of(state)]
    values = {
        "data_rule": lambda: render("shared/data", {"mark": lambda: mark}),
        "question": lambda: data("question", state["question"]),
        "points": lambda: data("points", "\n".join(points)) if points else "None on record.",
        "final_answer": lambda: data("answer", state["final_answer"]),
    }
    return [HumanMessage(render("shared/learn", values))]


def _template(seat: Seat, learnt: LearnedTemplate | None, model: str) -> templates.Template:
    if learnt is None:
        raise ModelFailed(seat.name, model, "unreadable", "it gave no readable template")
    steps = [f"{number}. {_line(step)}" for number, step in enumerate(learnt.steps, 1)]
    parts = (
        steps,
        [f"- {_line(check)}" for check in learnt.checks],
        [f"- {_line(error)}" for error in learnt.typical_errors],
    )
    body = "\n\n".join(
        "\n".join([f"## {heading}", *lines])
        for heading, lines in zip(templates.HEADINGS, parts, strict=True)
    )
    try:
        return templates.Template(
            id=_slug(learnt.title),
            title=shorten(clean(learnt.title), templates.LONGEST_TITLE),
            kind=_slug(learnt.kind, templates.LONGEST_KIND),
            use_when=_lines(learnt.use_when, templates.MOST_USES),
            tags=_lines(learnt.tags, templates.MOST_TAGS),
            body=body,
            origin="candidate",
        )
    except ValidationError as error:
        why = f"the {error.errors()[0]['loc'][0]} of its template cannot be used"
        raise ModelFailed(seat.name, model, "unreadable", why) from error


def _line(text: str) -> str:
    return " ".join(clean(text).split())


def _lines(texts: Sequence[str], most: int) -> tuple[str, ...]:
    return tuple(line for line in map(_line, texts) if line)[:most]


def _slug(text: str, most: int = 60) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:most].strip("-") or "learnt"
