from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.types import Command, StateSnapshot

from contend.graph.errors import BadInput
from contend.graph.state import Remark

_ANSWER = "__resume__"  # the channel in which langgraph keeps the answer to an interrupt


async def answer_pause(
    saver: BaseCheckpointSaver[Any], config: Any, snapshot: StateSnapshot, remark: Remark
) -> Command[Any]:
    """Build the command that resumes a paused debate with a person's comment or turn."""
    asked = snapshot.interrupts[0]
    answer = join_remarks(await _pending_answer(saver, config), remark).model_dump()
    people = [seat for seat in snapshot.values["seats"] if seat.is_human]
    # Several people may be asked at once; this answers the first.
    resume = {asked.id: answer} if len(people) > 1 else answer
    ends = remark.finish and "seat" in asked.value
    return Command(resume=resume, update={"finish": True} if ends else None)


async def _pending_answer(saver: BaseCheckpointSaver[Any], config: Any) -> Remark:
    """Return the answer that no node has read yet, or an empty remark."""
    saved = await saver.aget_tuple(config)
    writes = (saved.pending_writes if saved else None) or []
    answers = [value for _, channel, value in writes if channel == _ANSWER]
    # Answers that a task has read are in a list.
    given = [answer for each in answers if isinstance(each, list) for answer in each]
    not_given = [each for each in answers if not isinstance(each, list) and each not in given]
    return Remark.model_validate(not_given[-1]) if not_given else Remark()


def join_remarks(earlier: Remark, later: Remark) -> Remark:
    said = "\n\n".join(each.say for each in (earlier, later) if each.say)
    return Remark(say=said, finish=earlier.finish or later.finish)


def refuse_unusable_remark(remark: Remark, snapshot: StateSnapshot) -> None:
    """Raise BadInput if no speaker would see the comment, or if there is no round to finish."""
    if remark.finish and (not snapshot.next or snapshot.values.get("stop")):
        over = "The rounds are over" if snapshot.created_at else "The debate has not begun"
        raise BadInput(f"{over}. Resume the debate without --finish.")
    has_speakers = snapshot.created_at and snapshot.next and "final_answer" not in snapshot.values
    if remark.say and not has_speakers:
        raise BadInput("No speaker would see your comment now. Resume the debate without --say.")
