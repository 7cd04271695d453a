from contend.graph.record import DraftVote
from contend.graph.settings.seats import ManySeatSettings
from contend.graph.state import DebateState, Turn, turns_of
from contend.graph.stop_reasons import StopDecision
from contend.models.replies.short_answer import answer_key, brief_answer, most_frequent
from contend.nodes.prompting.answers import answer_part

_OWN_WORDS = ("ok", "fallback_model", "human")


def first_answers(state: DebateState) -> list[Turn]:
    """Return the initial answers of seats without an assigned position."""
    assigned = {seat.id for seat in state.get("seats", []) if seat.position}
    answers = [turn for turn in turns_of(state, "propose") if turn.seat not in assigned]
    first = min((turn.round for turn in answers), default=0)
    return [turn for turn in answers if turn.round == first and turn.status in _OWN_WORDS]


def agreed_answer(state: DebateState) -> str | None:
    """Return the short answer on which all initial answers agree, or None."""
    stated = [brief_answer(turn.text) for turn in first_answers(state)]
    known = [answer for answer in stated if answer]
    if len(known) < 2 or len(known) < len(stated) or len({*map(answer_key, known)}) > 1:
        return None
    return known[0]


def stop_if_agreed(
    state: DebateState, settings: ManySeatSettings, calls_saved: int
) -> StopDecision | None:
    if settings.debate_if != "drafts_disagree" or calls_saved < 1:
        return None
    agreed = agreed_answer(state)
    if agreed is None:
        return None
    count = len(first_answers(state))
    evidence = f"all {count} first answers are {agreed}; at least {calls_saved} calls were saved"
    return StopDecision(
        reason="drafts_agree", round=state["round"], evidence=evidence, calls_saved=calls_saved
    )


def draft_vote(state: DebateState) -> DraftVote | None:
    drafts = first_answers(state)
    stated = {turn.seat: brief_answer(turn.text) for turn in drafts}
    keys = {seat: answer_key(answer) for seat, answer in stated.items() if answer}
    final = brief_answer(answer_part(state.get("final_answer", "")))
    if "request" in state or not final or 2 * len(keys) <= len(drafts):
        return None
    winner = most_frequent(keys.values())
    vote = next((stated[seat] for seat, key in keys.items() if key == winner), None)
    return DraftVote(
        answers=stated,
        vote=vote,
        final=final,
        changed=None if winner is None else answer_key(final) != winner,
    )
