from collections.abc import Awaitable, Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

from contend.graph.errors import BUDGET, BadInput, ModelFailed
from contend.graph.events import node_event
from contend.graph.phases import PHASES, STATEMENTS
from contend.graph.protocols.base import PlannedCall, strategy_for
from contend.graph.settings import DebateSettings
from contend.graph.state import DebateState
from contend.graph.stop_reasons import StopDecision, stop
from contend.graph.values import NO_USAGE, Usage, WorkSpan
from contend.models.budget import (
    NO_BUDGET,
    NOTHING,
    Amount,
    CallBudget,
    CallPrice,
    amount_of,
    amount_of_earlier,
    cap_of,
    cap_words,
    check_prices,
    least_answer,
    most_tokens,
)
from contend.models.providers.registry import parse_spec
from contend.models.seats import window_for
from contend.models.tokens import count_tokens
from contend.nodes.timing import spoken_by_models

if TYPE_CHECKING:  # commands that only read debates need no langgraph
    from langgraph.runtime import Runtime

OUT_OF_BUDGET = "out_of_budget"
# Estimated tokens: typical and maximum instructions in a prompt, then answers and decisions.
_INSTRUCTIONS, _LONG_INSTRUCTIONS = 900, 2000
_ANSWER, _DECISION = 700, 400
_ANSWERS = {"propose", *STATEMENTS}

Node = TypeVar("Node", bound=Callable[..., Awaitable[dict[str, Any]]])


def call_budget(
    state: DebateState, runtime: "Runtime[Any]", phase: str, pause_requested: Callable[[], bool]
) -> CallBudget:
    """Return the next call's budget, setting aside the cost of the calls that must follow."""
    settings: DebateSettings = runtime.context
    cap = cap_of(settings)
    if cap is None:
        return NO_BUDGET
    info = runtime.execution_info
    return CallBudget(
        debate=(info.thread_id if info else None) or "local",
        used=used_by(state, settings),
        kept=_price(state, settings, calls_after(state, settings, phase)),
        warn=partial(_warn, runtime, state.get("round"), cap),
        pause_requested=pause_requested,
    )


def check_budget(state: DebateState, settings: DebateSettings) -> None:
    cap = cap_of(settings)
    if cap is None:
        return
    check_prices(state["seats"], settings)
    if state.get("turns"):  # a resumed debate pauses again if a call does not fit
        return
    first = [seat for seat in state["seats"] if seat.id in settings.opening_seats]
    opened: DebateState = {"round": strategy_for(settings).first_round, **state}
    closing = _price(opened, settings, strategy_for(settings).closing_calls(opened))
    needed = _price(opened, settings, [PlannedCall(first[0], "propose")], said_next=0) + closing
    if needed.share_of(cap) > 1:
        raise BadInput(
            f"A budget of {cap_words(cap)} does not pay for one call and the answer, which need "
            f"about {cap_words(cap, needed)}. Choose a larger one."
        )


def used_by(state: DebateState, settings: DebateSettings) -> Amount:
    """Return the usage of the debate's own calls. A fork does not count its parent's calls."""
    before = state.get("paid_before", NO_USAGE)
    return _used_in_all(state, settings) - amount_of(before, NOTHING)


def paid_by(state: DebateState, settings: DebateSettings) -> Usage:
    """Return the usage up to this state. A fork from this state does not pay for it again."""
    used = _used_in_all(state, settings)
    return Usage(input_tokens=round(used.tokens), output_tokens=0, cost_usd=used.cost)


def _used_in_all(state: DebateState, settings: DebateSettings) -> Amount:
    anybody = [seat.model for seat in state.get("seats", []) if not seat.is_human]
    used = [(span.usage, anybody) for span in state.get("spans", [])]
    used += [(turn.usage, [turn.model]) for turn in spoken_by_models(state)]
    prices = settings.prices
    return sum((amount_of_earlier(usage, by, prices) for usage, by in used), NOTHING)


def budget_stop(state: DebateState, settings: DebateSettings) -> StopDecision | None:
    cap = cap_of(settings)
    if cap is None:
        return None
    number, strategy = state["round"], strategy_for(settings)
    if any(each.what == OUT_OF_BUDGET and each.round == number for each in _degraded(state)):
        return _stop(number, cap, "did not pay for all calls of this round")
    used, closing = used_by(state, settings), _price(state, settings, strategy.closing_calls(state))
    needed = _price(state, settings, strategy.round_calls(state)) + closing
    if (used + needed).share_of(cap) <= 1:
        return None
    why = f"might not pay for another round and the answer ({cap_words(cap, used)} used)"
    return _stop(number, cap, why)


def ends_rounds_when_spent(node: Node) -> Node:
    """Make a node end the rounds if the budget does not cover the node's next call."""

    @wraps(node)
    async def run(state: DebateState, runtime: "Runtime[Any]") -> dict[str, Any]:
        try:
            return await node(state, runtime)
        except ModelFailed as failed:
            if failed.kind != BUDGET or not _can_answer(state):
                raise
            return _end_rounds(state, runtime, failed)

    return cast("Node", run)


def _end_rounds(state: DebateState, runtime: "Runtime[Any]", failed: ModelFailed) -> dict[str, Any]:
    number, cap = state["round"], cap_of(runtime.context)
    ended = state.get("stop") or _stop(number, cap, "did not pay for the next call")
    if "stop" not in state:
        about = {"reason": ended.reason, "decision": "stop", "by_model": False}
        for name in ("judge_decision", "early_stop"):
            runtime.stream_writer(node_event(name, number, ended.evidence, **about))
    update: dict[str, Any] = {"stop": ended, "degraded": failed.degraded}
    if failed.spent not in (None, NO_USAGE) and failed.started_at and failed.ended_at:
        times = {"started_at": failed.started_at, "ended_at": failed.ended_at}
        update["spans"] = [WorkSpan(**times, calls=1, usage=failed.spent or NO_USAGE)]
    # Clear the schedule, so that no further turns are taken.
    return update | {name: [] for name in ("waiting", "programme") if state.get(name)}


def _can_answer(state: DebateState) -> bool:
    return any(turn.phase in _ANSWERS for turn in state.get("turns", []))


def _degraded(state: DebateState) -> Sequence[Any]:
    return state.get("degraded", [])


def _stop(number: int, cap: Amount | None, why: str) -> StopDecision:
    size = f" of {cap_words(cap)}" if cap else ""
    ended = stop("budget", number, f"the budget{size} {why}")
    return ended.model_copy(update={"early": True})


def calls_after(state: DebateState, settings: DebateSettings, phase: str) -> Sequence[PlannedCall]:
    if phase == "synthesize":  # set nothing aside for scoring, or the answer might never be written
        return []
    calls = strategy_for(settings).closing_calls(state)
    said = {turn.phase for turn in state.get("turns", [])}
    calls = [each for each in calls if each.phase not in said or each.phase in STATEMENTS]
    own = [at for at, each in enumerate(calls) if each.phase == phase]
    return calls[own[-1] + 1 :] if own else calls


def _price(
    state: DebateState,
    settings: DebateSettings,
    calls: Sequence[PlannedCall],
    said_next: int | None = None,
) -> Amount:
    """Return the likely cost of these calls, plus a margin for the most uncertain call."""
    calls = [each for each in calls if not each.seat.is_human]
    if not calls:
        return NOTHING
    texts = [state.get("question", ""), *(turn.text for turn in state.get("turns", []))]
    longest, likely = most_tokens(*texts), count_tokens("\n".join(texts))
    written = [turn.usage.output_tokens or 0 for turn in spoken_by_models(state)]
    answer = _somewhat_more_than_usual(written)
    if said_next is None:  # the texts do not include the models' thinking
        said_next = _somewhat_more_than_usual([count_tokens(text) for text in texts[1:]])
    given = (longest + 2 * said_next, likely + said_next, answer)
    pairs = [_price_of(each, settings, *given) for each in calls]
    margins = [worst - usual for usual, worst in pairs]
    margin = Amount(max(m.tokens for m in margins), max(m.cost for m in margins))
    return sum((usual for usual, _ in pairs), margin)


def _price_of(
    call: PlannedCall, settings: DebateSettings, longest: int, likely: int, answer: int
) -> tuple[Amount, Amount]:
    spec = parse_spec(call.seat.model)
    window = window_for(call.seat.model, settings) or longest
    limit = strategy_for(settings).token_limit(call.phase)
    if not PHASES[call.phase].is_streamed:  # a decision is shorter than a speech
        answer = min(answer, _DECISION)
    least = max(answer, least_answer(spec, limit))
    given = min(longest, window) + _LONG_INSTRUCTIONS
    worst = CallPrice.of(spec, settings, given, least, limit)
    usual = CallPrice.of(spec, settings, min(likely, window) + _INSTRUCTIONS, answer, limit)
    return usual.worst(answer), worst.worst(least)


def _somewhat_more_than_usual(lengths: Sequence[int]) -> int:
    known = [length for length in lengths if length]
    return round(1.2 * sum(known) / len(known)) if known else _ANSWER


def _warn(runtime: "Runtime[Any]", number: int | None, cap: Amount, spent: Amount) -> None:
    share = round(spent.share_of(cap) * 100)
    said = f"{share} % of the budget is used: {cap_words(cap, spent)} of {cap_words(cap)}"
    about = {"tokens": spent.tokens, "cost_usd": spent.cost, "share": share / 100}
    runtime.stream_writer(node_event("budget", number, said, **about))
