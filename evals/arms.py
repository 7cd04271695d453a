"""Defines the arms of an eval: ways to answer one item, from a single call to a debate."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import NAMESPACE_URL, uuid5

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.memory import InMemorySaver

from contend.debates.forecasts import PROTOCOL as FORECAST
from contend.debates.forecasts import plain_request
from contend.debates.history import graph_of
from contend.evals.grading import Grade, grade, grade_answer, grade_probability, question_text
from contend.evals.items import Item
from contend.evals.run_store import ArmDraft
from contend.graph.forecast_contract.result import DebateResult
from contend.graph.protocols.base import strategy_for
from contend.graph.serializer import serializer
from contend.graph.settings import SETTINGS, DebateSettings
from contend.graph.state import DebateState
from contend.graph.values import NO_USAGE, Seat, Usage
from contend.models.answers import Reply
from contend.models.calls import ask_model
from contend.models.replies.short_answer import answer_key, most_frequent
from contend.models.retries import Listener
from contend.nodes.drafts import first_answers
from contend.nodes.forecast.numbers import log_odds_pool
from contend.nodes.timing import start_clock

GATED = "gated"
# The protocol that the gated arm runs; the arms without a debate use its seats.
GATED_PROTOCOL = "refine"
BASELINES = ("single", "self_consistency", "panel_vote", "self_refine")
ARMS = (*BASELINES, *SETTINGS, GATED)
# A vote among samples of one model is useless unless the samples differ.
_SAMPLING_TEMPERATURE = 0.7
_MOST_SAMPLES = 64

_INSTRUCTION = "Answer the question. Think it through step by step before you state the answer."
_FEEDBACK = (
    "Check your answer: look for mistakes in facts, logic and calculation, and for anything that "
    "was asked and is missing. List what must change, or say that nothing must."
)
_REVISE = "Write your final answer to the question, with what you found corrected."


@dataclass(frozen=True)
class Plan:
    settings: DebateSettings
    seats: list[Seat]


@dataclass(frozen=True)
class ArmContext:
    plans: dict[str, Plan]
    samples: int = 5
    budget: int | None = None
    spent: Callable[[], Usage] = lambda: NO_USAGE

    @property
    def panel(self) -> list[Seat]:
        plan = self.plans[GATED_PROTOCOL]
        return [seat for seat in plan.seats if seat.role != "judge"]

    @property
    def call_settings(self) -> DebateSettings:
        return self.plans[GATED_PROTOCOL].settings

    def may_go_on(self, done: int, planned: int, next_tokens: float | None = None) -> bool:
        """Return whether another call fits the budget or, if there is none, the planned number."""
        if self.budget is None:
            return done < planned
        used = _tokens(self.spent())
        if used is None or done >= _MOST_SAMPLES:
            return False
        each = used / done if done else 0
        return done < 1 or used + (each if next_tokens is None else next_tokens) <= self.budget


@dataclass
class ArmOutcome:
    reply: str
    grade: Grade
    drafts: list[ArmDraft] = field(default_factory=list)
    vote: Grade | None = None
    debated: bool | None = None
    stop_reason: str | None = None


class NotApplicable(Exception):
    pass


Arm = Callable[[Item, ArmContext], Awaitable[ArmOutcome]]


def arm_of(name: str) -> Arm:
    if name in SETTINGS or name == GATED:
        return lambda item, context: _debate(name, item, context)
    return _BASELINES[name]


def protocols_of(arms: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([GATED_PROTOCOL, *(arm for arm in arms if arm in SETTINGS)]))


# --- without a debate ---


async def _single(item: Item, context: ArmContext) -> ArmOutcome:
    reply = await _ask(context.panel[0], _opening(item), context, "single")
    return ArmOutcome(reply.text, grade(reply.text, item))


async def _self_consistency(item: Item, context: ArmContext) -> ArmOutcome:
    first = context.panel[0]
    seat = first.model_copy(update={"temperature": first.temperature or _SAMPLING_TEMPERATURE})
    replies: list[tuple[str, str]] = []
    while context.may_go_on(len(replies), context.samples):
        number = len(replies) + 1
        reply = await _ask(seat, _opening(item), context, f"sample.{number}")
        replies.append((f"sample {number}", reply.text))
    return _voted(replies, item)


async def _panel_vote(item: Item, context: ArmContext) -> ArmOutcome:
    replies: list[tuple[str, str]] = []
    tokens = 0
    while context.may_go_on(len(replies), len(context.panel), tokens):
        round_number, before = len(replies) // len(context.panel) + 1, context.spent()
        for seat in context.panel:
            reply = await _ask(seat, _opening(item), context, f"{seat.id}.{round_number}")
            replies.append((seat.id, reply.text))
        tokens = _tokens_since(before, context)
    return _voted(replies, item)


async def _self_refine(item: Item, context: ArmContext) -> ArmOutcome:
    seat, opening = context.panel[0], _opening(item)
    first = await _ask(seat, opening, context, "draft")
    text, rounds = first.text, 0
    # A round's prompts repeat the opening twice, the last answer twice and the notes once.
    used = context.spent()
    tokens = 2 * (used.input_tokens or 0) + 5 * (used.output_tokens or 0)
    while context.may_go_on(rounds + 1, 2, tokens):
        rounds, before = rounds + 1, context.spent()
        asked = [*opening, AIMessage(text), HumanMessage(_FEEDBACK)]
        notes = await _ask(seat, asked, context, f"feedback.{rounds}")
        asked = [*asked, AIMessage(notes.text), HumanMessage(_REVISE)]
        revised = await _ask(seat, asked, context, f"revision.{rounds}")
        text, tokens = revised.text, _tokens_since(before, context)
    draft = _draft(seat.id, first.text, item)
    vote = grade(first.text, item)
    return ArmOutcome(text, grade(text, item), [draft], vote)


_BASELINES: dict[str, Arm] = {
    "single": _single,
    "self_consistency": _self_consistency,
    "panel_vote": _panel_vote,
    "self_refine": _self_refine,
}


def _opening(item: Item) -> list[BaseMessage]:
    return [SystemMessage(_INSTRUCTION), HumanMessage(question_text(item))]


async def _ask(seat: Seat, messages: list[BaseMessage], context: ArmContext, name: str) -> Reply:
    listener = Listener(debate=f"eval {name}", asked=name)
    answered = await ask_model(seat, messages, context.call_settings, listener)
    return answered.result


def _tokens(usage: Usage) -> int | None:
    if usage.input_tokens is None or usage.output_tokens is None:
        return None
    return usage.input_tokens + usage.output_tokens


def _tokens_since(before: Usage, context: ArmContext) -> int:
    # Not from the replies: calls that a stopped run has stored are repeated without usage.
    return (_tokens(context.spent()) or 0) - (_tokens(before) or 0)


def _voted(replies: Sequence[tuple[str, str]], item: Item) -> ArmOutcome:
    drafts = [_draft(seat, text, item) for seat, text in replies]
    vote = vote_of(drafts, item)
    texts = [text for _, text in replies]
    chosen = texts[0]
    if vote.answer is not None:
        keys = [draft.answer and answer_key(draft.answer) for draft in drafts]
        chosen = texts[keys.index(answer_key(vote.answer))]
    return ArmOutcome(chosen, vote if item.kind != "open" else grade(chosen, item), drafts, vote)


def _draft(seat: str, text: str, item: Item) -> ArmDraft:
    found = grade(text, item)
    answer = found.answer if item.kind != "open" else None
    return ArmDraft(seat=seat, answer=answer, right=found.right, probability=found.probability)


def vote_of(drafts: Sequence[ArmDraft], item: Item) -> Grade:
    """Grade the drafts' majority answer or pooled probability; a tie counts as no answer."""
    if item.kind == "forecast":
        stated = [draft.probability for draft in drafts if draft.probability is not None]
        pooled = log_odds_pool([{"yes": p, "no": 1 - p} for p in stated], ("yes", "no"))
        return grade_probability(pooled.get("yes"), item)
    if item.kind == "open":
        return Grade(None, None)
    winner = most_frequent(draft.answer and answer_key(draft.answer) for draft in drafts)
    named = (d.answer for d in drafts if d.answer and answer_key(d.answer) == winner)
    return grade_answer(next(named, None), item)


# --- debates ---


async def _debate(arm: str, item: Item, context: ArmContext) -> ArmOutcome:
    protocol = GATED_PROTOCOL if arm == GATED else arm
    plan = context.plans[protocol]
    settings = plan.settings
    if arm == GATED:
        settings = settings.model_copy(update={"debate_if": "drafts_disagree"})
    state = await _run_in_memory(f"{item.id} {arm}", item, Plan(settings, plan.seats))
    text, stop = state.get("final_answer", ""), state.get("stop")
    drafts = [] if "request" in state else first_answers(state)
    graded = [_draft(turn.seat, turn.text, item) for turn in drafts]
    return ArmOutcome(
        reply=text,
        grade=_grade_forecast(state["forecast"], item)
        if "forecast" in state
        else grade(text, item),
        drafts=graded,
        vote=vote_of(graded, item) if graded else None,
        debated=stop is None or stop.reason != "drafts_agree",
        stop_reason=stop.reason if stop else None,
    )


async def _run_in_memory(name: str, item: Item, plan: Plan) -> DebateState:
    """Run a debate without a database; the eval run records the calls."""
    protocol, debate_id = plan.settings.protocol, str(uuid5(NAMESPACE_URL, name))
    graph = graph_of(protocol, InMemorySaver(serde=serializer()))
    given: DebateState = {"question": question_text(item), "seats": plan.seats}
    if protocol == FORECAST:
        request = plain_request(item.question, _outcomes(item), None)
        given["request"] = request.model_copy(update={"task_id": debate_id}).model_dump(mode="json")
        given["question"] = item.question
    config: Any = {
        "configurable": {"thread_id": debate_id},
        "recursion_limit": strategy_for(plan.settings).max_steps,
    }
    start_clock()
    return cast("DebateState", await graph.ainvoke(given, config, context=plan.settings))


def _outcomes(item: Item) -> list[dict[str, str]]:
    if item.kind in ("yes_no", "forecast"):
        return [{"id": each, "label": each.capitalize()} for each in ("yes", "no")]
    if item.kind == "choice":
        pairs = zip(item.letters, item.options, strict=True)
        return [{"id": letter, "label": option} for letter, option in pairs]
    raise NotApplicable("a forecast needs outcomes to choose from")


def _grade_forecast(forecast: dict[str, Any], item: Item) -> Grade:
    found = DebateResult.model_validate(forecast).probability_distribution
    stated = {each.outcome_id: each.probability for each in found if each.probability is not None}
    if item.kind == "forecast":
        return grade_probability(stated.get("yes"), item)
    highest = max(stated.values(), default=None)
    likeliest = [outcome for outcome, p in stated.items() if p == highest]
    graded = grade_answer(likeliest[0] if len(likeliest) == 1 else None, item)
    return replace(graded, probability=stated.get("yes")) if item.kind == "yes_no" else graded
