from types import MappingProxyType
from typing import ClassVar

from pydantic import Field, PositiveInt

from contend.graph.settings.seats import ManySeatSettings


class RefineSettings(ManySeatSettings):
    """Several models write and refine answers; a judge gives feedback and merges the answers."""

    protocol: ClassVar[str] = "refine"
    use_when = "You want a good answer quickly: texts, summaries, short tasks."
    used_by = MappingProxyType(
        {
            "propose": ("seats", "max_tool_calls", "debate_timeout_ms"),
            "critique": ("judge", "feedback_excerpt", "judge_feedback_timeout_ms"),
            "judge_continue": ("enable_debate", "max_debate_rounds", "debate_if"),
            "synthesize": ("judge",),
            "score": ("judge",),
        }
    )

    judge_model: str = Field(
        "ollama:gemma3:27b",
        description="Model that gives feedback, merges the answers and scores the result.",
    )
    enable_debate: bool = Field(
        True, description="Refine the answers; if false, merge the initial answers."
    )
    max_debate_rounds: int = Field(2, ge=0, le=20, description="Rounds of feedback and refinement.")
    debate_timeout_ms: PositiveInt = Field(
        10_000,
        description="Milliseconds for a model to refine its answer; a late call is not retried.",
    )
    feedback_excerpt: int | None = Field(
        None,
        ge=300,
        le=500,
        description="Characters of each answer that the judge reads for feedback; by default all.",
    )
    judge_feedback_timeout_ms: PositiveInt = Field(
        8_000,
        description="Milliseconds for the judge to give feedback; a late call is not retried.",
    )
