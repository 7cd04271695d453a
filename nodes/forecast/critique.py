from collections.abc import Awaitable, Sequence
from typing import Any

from langgraph.runtime import Runtime

from contend.graph.errors import ModelFailed
from contend.graph.protocols.base import strategy_for
from contend.graph.settings import ForecastSettings
from contend.graph.state import DebateState, Turn, seat_with_id
from contend.nodes.calls.results import CallResults, join_results, update_of, with_turns
from contend.nodes.calls.stream import report_problem
from contend.nodes.calls.tasks import stored_task
from contend.nodes.calls.turn import gather_results
from contend.nodes.forecast.argue import argue, reading_of
from contend.nodes.forecast.arguments import (
    GOOD_ENOUGH,
    ScoredArgument,
    all_arguments,
    kept_arguments,
    misses_goal,
    of_round,
)
from contend.nodes.forecast.calls import TurnPublisher
from contend.nodes.forecast.schedule import Clock, round_phase
from contend.nodes.forecast.score import score_argument
from contend.nodes.timing import span_since, steady_now

TOO_WEAK = 0.2


async def critique(state: DebateState, runtime: Runtime[Any]) -> dict[str, Any]:
    settings: ForecastSettings = runtime.context
    began, clock, publisher = steady_now(), Clock(state, settings), TurnPublisher(runtime)
    outdated = _find_outdated_reply(state, settings)
    calls = [
        _weigh_once(state, runtime, said.turn, clock, publisher)
        for said in _unfinished(state)
        if said != outdated
    ]
    if outdated:
        calls.append(_argue_anew_once(state, runtime, outdated.turn, clock, publisher))
    joined = await _join(calls)
    seen = with_turns(state, joined["turns"])
    below = _below_goal(seen, [*state.get("given_up", []), *joined["given_up"]])
    more = await _join(
        [_argue_again_once(seen, runtime, said.turn, clock, publisher) for said in below]
    )
    joined = join_results([joined, more])
    publisher.publish(joined["turns"])
    joined["spans"].append(span_since(began))
    return update_of(joined)


async def _join(calls: Sequence[Awaitable[CallResults]]) -> CallResults:
    results = await gather_results(calls)
    return join_results(each for each in results if not isinstance(each, ModelFailed))


def _below_goal(state: DebateState, given_up: list[str]) -> list[ScoredArgument]:
    """Return this round's arguments to improve, if too few arguments are good."""
    if not misses_goal(kept_arguments(state), expected=len(state["waiting"])):
        return []
    return [
        each
        for each in _argued_once(state, given_up)
        if each.composite is not None and each.composite <= GOOD_ENOUGH
    ]


def _unfinished(state: DebateState) -> list[ScoredArgument]:
    once = _argued_once(state, state.get("given_up", []))
    return [each for each in once if each.score is None or _is_weak(each)]


def _argued_once(state: DebateState, given_up: list[str]) -> list[ScoredArgument]:
    said = of_round(all_arguments(state), state["round"])
    versions = [each.role for each in said]
    return [
        each for each in said if each.turn.id not in given_up and versions.count(each.role) == 1
    ]


def _is_weak(said: ScoredArgument) -> bool:
    return said.composite is not None and said.composite < TOO_WEAK


def _find_outdated_reply(state: DebateState, settings: ForecastSettings) -> ScoredArgument | None:
    """Return the last speaker's argument if it answers a replaced argument."""
    number = state["round"]
    first = strategy_for(settings).speakers(number, settings.role_names)
    said = of_round(all_arguments(state), number)
    kept = {each.turn.id for each in of_round(kept_arguments(state), number)}
    first_versions = {each.role: each.turn.id for each in reversed(said) if each.role in first}
    later = [each for each in said if each.role not in first]
    return later[0] if later and not kept.issuperset(first_versions.values()) else None


async def _weigh(
    state: DebateState,
    node_runtime: Runtime[Any],
    argument: Turn,
    clock: Clock,
    publisher: TurnPublisher,
) -> CallResults:
    """Score an argument, and give the role a second try if the score is low."""
    scored: CallResults = join_results([])
    if _find(state, argument).score is None:
        scored = await score_argument(state, node_runtime, argument, clock.end_of("scores"))
        publisher.publish(scored["turns"])
    seen = with_turns(state, scored["turns"])
    before = _find(seen, argument)
    if not _is_weak(before):
        return scored
    return join_results(
        [scored, await _argue_again(seen, node_runtime, argument, clock, publisher)]
    )


async def _argue_again(
    state: DebateState,
    node_runtime: Runtime[Any],
    argument: Turn,
    clock: Clock,
    publisher: TurnPublisher,
) -> CallResults:
    seat, before = seat_with_id(state, argument.seat), _find(state, argument)
    again = await argue(
        state, node_runtime, seat, "stronger", argument, clock.end_of("second_versions")
    )
    if not again["turns"]:
        return again
    (second,) = again["turns"]
    publisher.publish(again["turns"])
    seen = with_turns(state, [second])
    rescored = await score_argument(seen, node_runtime, second, clock.end_of("scores"))
    after = _find(with_turns(seen, rescored["turns"]), second)
    kept = "the second" if (after.composite or 0) > (before.composite or 0) else "the first"
    why = f"scored {before.composite:.2f}, so it was argued again; {kept} version stands"
    rescored["degraded"].append(
        report_problem(node_runtime, seat, argument.round, "argued_again", why)
    )
    return join_results([again, rescored])


async def _argue_anew(
    state: DebateState,
    node_runtime: Runtime[Any],
    earlier: Turn,
    clock: Clock,
    publisher: TurnPublisher,
) -> CallResults:
    """Let a role argue again after an argument it answered was replaced."""
    seat, part = seat_with_id(state, earlier.seat), round_phase(node_runtime.context, earlier.round)
    argued = await argue(state, node_runtime, seat, part, None, clock.end_of("second_versions"))
    if not argued["turns"]:
        return {**argued, "given_up": [earlier.id]}
    (turn,) = argued["turns"]
    anew = reading_of(turn).model_copy(update={"anew": True})
    turn = turn.model_copy(update={"assessment": anew})
    publisher.publish([turn])
    why = "an argument it had answered was replaced, so it argued again"
    argued["turns"] = [turn]
    argued["degraded"].append(report_problem(node_runtime, seat, earlier.round, "argued_anew", why))
    return join_results(
        [argued, await _weigh(with_turns(state, [turn]), node_runtime, turn, clock, publisher)]
    )


# These are tasks, so that the calls for each argument are numbered separately, as in propose.
_weigh_once = stored_task("_weigh", _weigh)
_argue_again_once = stored_task("_argue_again", _argue_again)
_argue_anew_once = stored_task("_argue_anew", _argue_anew)


def _find(state: DebateState, argument: Turn) -> ScoredArgument:
    return next(each for each in all_arguments(state) if each.turn.id == argument.id)
