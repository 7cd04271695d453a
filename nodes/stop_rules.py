"""When a debate's rounds end: the rule of each protocol, free of any call and of the clock."""

from functools import singledispatch

from contend.graph.settings import (
    AdversarialSettings,
    DebateSettings,
    ForecastSettings,
    ForumSettings,
    ModeratedSettings,
    RefineSettings,
)
from contend.graph.state import (
    Assessment,
    Conviction,
    DebateState,
    Decision,
    StopDecision,
    StopReason,
    seat_with_id,
    turns_of,
)
from contend.nodes.forum.concessions import count_concessions, staying
from contend.nodes.prompting.answers import answers_of
from contend.nodes.prompting.prompt import points_of
from contend.nodes.timing import worked_ms


@singledispatch
def stop_decision(settings: DebateSettings, state: DebateState) -> StopDecision | None:
    """What the protocol's own rule says of a finished round; each protocol registers one."""
    raise NotImplementedError(f"{settings.protocol} has no rule for round {state['round']}")


@stop_decision.register
def _adversarial_ruling(settings: AdversarialSettings, state: DebateState) -> StopDecision | None:
    read = turns_of(state, "critique")[-1].assessment
    assessment = read if isinstance(read, Assessment) else None
    stop = stop_rule(assessment, state["round"], settings)
    if stop and stop.reason != "max_rounds":
        stop = stop.model_copy(update={"evidence": stop.evidence + _loose_ends(state)})
    return stop


@stop_decision.register
def _refine_ruling(settings: RefineSettings, state: DebateState) -> StopDecision | None:
    """All rounds are used, unless nobody could refine: the next would fare no better."""
    number, (_, most) = state["round"], settings.rounds
    if not settings.enable_debate:
        return _stop("max_rounds", number, "the debate is switched off")
    answers = [turn for turn in turns_of(state, "propose") if turn.round == number]
    if all(turn.status == "kept_previous" for turn in answers):
        return _stop("failed", number, "every model failed, so the initial answers stand")
    if number < most:
        return None
    used = f"all {most} refinement rounds were" if most > 1 else "the one refinement round was"
    return _stop("max_rounds", number, f"{used} used" if most else "no refinement was asked for")


@stop_decision.register
def _forum_ruling(settings: ForumSettings, state: DebateState) -> StopDecision | None:
    """One left, the judge's word, or the last round."""
    number, active = state["round"], state["active"]
    if len(active) == 1:
        return _last_one(state, active[0])
    judged = [turn for turn in turns_of(state, "judge_continue") if turn.round == number]
    decision = judged[-1].assessment if judged else None
    if isinstance(decision, Decision) and decision.decision == "stop":
        return _stop("judge_stop", number, f"the judge ended it: {decision.reasoning}")
    if judged and judged[-1].status == "failed":
        return _stop("judge_stop", number, "the judge could not be asked")
    if number < settings.max_rounds:
        return None
    held = sum(bool(answers_of(state, seat)) for seat in active)
    still = f", with {held} positions still held" if held > 1 else ""
    return _stop("max_rounds", number, f"{_used(settings.max_rounds)}{still}")


def _last_one(state: DebateState, seat: str) -> StopDecision:
    """One seat is left; where it, too, had conceded, the debate has converged on its position."""
    number, name = state["round"], seat_with_id(state, seat).name
    said = [turn for turn in turns_of(state, "conviction_check") if turn.round == number]
    own = [turn.assessment for turn in said if turn.seat == seat]
    yielded = own[-1] if own else None
    taken_back = any(
        (entry.what, entry.seat, entry.round) == ("concession_withdrawn", seat, number)
        for entry in state.get("degraded", [])
    )
    if isinstance(yielded, Conviction) and yielded.convinced_by and not taken_back:
        why = _why_it_stays(state, seat, yielded.convinced_by)
        return _stop("converged", number, f"all conceded at once, and {name} stays: {why}")
    return _stop("one_left", number, f"only {name} has not conceded")


def _why_it_stays(state: DebateState, seat: str, conceded_to: str) -> str:
    """Which rule kept the last seat of those who all conceded in this round."""
    number = state["round"]
    now = {each.seat: each.convinced_by for each in state["eliminations"] if each.round == number}
    now[seat] = conceded_to
    at_the_table = [each.id for each in state["seats"] if each.id in now]
    return staying(now, at_the_table, count_concessions(state, before=number))[seat]


def _used(rounds: int) -> str:
    return f"all {rounds} rounds were used" if rounds > 1 else "the one round was used"


@stop_decision.register
def _forecast_ruling(settings: ForecastSettings, state: DebateState) -> StopDecision | None:
    """All rounds are held, unless the time is up or nobody could speak any more."""
    number = state["round"]
    if number >= settings.max_rounds:
        used = f"all {settings.max_rounds} rounds were" if number > 1 else "the one round was"
        return _stop("max_rounds", number, f"{used} held")
    if worked_ms(state) >= settings.rounds_timeout * 1000:
        why = f"the {settings.rounds_timeout:g} s of the rounds were used up"
        return _stop("timeout", number, why)
    if not any(turn.round == number for turn in turns_of(state, "propose")):
        return _stop("failed", number, "no role could speak")
    return None


@stop_decision.register
def _moderated_ruling(settings: ModeratedSettings, state: DebateState) -> StopDecision | None:
    """All rounds are argued; what follows is closing statements."""
    number, most = state["round"], settings.round_count
    if number < most:
        return None
    used = f"all {most} rounds were argued" if most > 1 else "the one round was argued"
    return _stop("max_rounds", number, used if most else "no rounds were asked for")


def stop_rule(
    assessment: Assessment | None, round_number: int, settings: AdversarialSettings
) -> StopDecision | None:
    """The adversarial rule, in its order. An unread critique can only meet the maximum."""
    at_minimum = round_number >= settings.min_rounds
    score = assessment.score if assessment else None
    enough = score is not None and score >= settings.early_stop_score
    ready = assessment is not None and assessment.ready and (score is None or enough)

    if ready and (at_minimum or not settings.ready_respects_min_rounds):
        return _stop("skeptic_ready", round_number, "the Skeptic found the answer ready")
    if enough and at_minimum:
        return _stop("score_reached", round_number, f"the Skeptic scored it {score:g} of 10")
    if round_number >= settings.max_rounds:
        return _stop("max_rounds", round_number, _used(settings.max_rounds))
    if assessment and at_minimum and assessment.none_critical:
        return _stop("no_critical_issues", round_number, "no critical issue is left")
    return None


def _stop(reason: StopReason, round_number: int, evidence: str) -> StopDecision:
    return StopDecision(reason=reason, round=round_number, evidence=evidence)


def _loose_ends(state: DebateState) -> str:
    """Critical points nobody settled: the stop stands, and says so."""
    critical = [point for point in points_of(state) if point.severity == "critical"]
    left = ", ".join(p.id for p in critical if p.status in ("open", "partial"))
    dropped = ", ".join(p.id for p in critical if p.status == "dropped")
    said = [f"still open: {left}"] if left else []
    said += [f"not raised again: {dropped}"] if dropped else []
    return f" (critical and {'; '.join(said)})" if said else ""
