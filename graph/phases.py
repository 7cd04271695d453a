from dataclasses import dataclass
from typing import Literal

StepPhase = Literal[
    "positions",
    "request",
    "opening",
    "argument",
    "rebuttal",
    "correction",
    "summary",
    "closing",
    "end",
]
PhaseName = (
    StepPhase
    | Literal[
        "propose",
        "critique",
        "conviction_check",
        "judge_continue",
        "ruling",
        "adjustment",
        "fact_check",
        "remark",
        "verdict",
        "synthesize",
        "score",
    ]
)


@dataclass(frozen=True)
class PhaseRow:
    label: str
    in_history: bool = True  # later prompts show the turn
    after_rounds: bool = False
    is_streamed: bool = True  # viewers see the turn while it is being written
    is_statement: bool = False  # a side speaks for its position, and is scored
    has_checked_quotes: bool = True
    activity: str = "thinking"  # shown to viewers while they wait


PHASES: dict[PhaseName, PhaseRow] = {
    "propose": PhaseRow("answer"),
    "critique": PhaseRow("critique"),
    "conviction_check": PhaseRow(
        "asked whether it concedes",
        in_history=False,
        is_streamed=False,
        activity="considering the other answers",
    ),
    "judge_continue": PhaseRow(
        "asked whether another round is worth it",
        in_history=False,
        is_streamed=False,
        activity="deciding whether to continue",
    ),
    "positions": PhaseRow("positions", in_history=False, is_streamed=False),
    "request": PhaseRow("request", in_history=False, is_streamed=False),
    "opening": PhaseRow("opening statement", is_statement=True),
    "argument": PhaseRow("argument", is_statement=True),
    "rebuttal": PhaseRow("rebuttal", is_statement=True),
    "correction": PhaseRow("correction"),
    "ruling": PhaseRow("ruling"),
    "adjustment": PhaseRow("change of the rounds"),
    "fact_check": PhaseRow(
        "fact check", in_history=False, is_streamed=False, activity="checking claims"
    ),
    "summary": PhaseRow("summary of the round", is_streamed=False),
    "closing": PhaseRow("closing statement", is_statement=True),
    "end": PhaseRow("end of the debate", in_history=False, is_streamed=False),
    "remark": PhaseRow("remark", in_history=False),
    "verdict": PhaseRow("the verdict", in_history=False, after_rounds=True),
    "synthesize": PhaseRow("final answer", after_rounds=True),
    "score": PhaseRow(
        "scores",
        in_history=False,
        after_rounds=True,
        is_streamed=False,
        has_checked_quotes=False,
        activity="rating the answer",
    ),
}
STATEMENTS = frozenset(name for name, row in PHASES.items() if row.is_statement)
AFTER_THE_ROUNDS = frozenset(name for name, row in PHASES.items() if row.after_rounds)
