import re
from types import MappingProxyType
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from contend.graph.settings.seats import ManySeatSettings
from contend.graph.values import Seat

JudgeMode = Literal["external_judge", "self_convergence", "display_only"]
DebateFormat = Literal[
    "free_discussion", "structured_opposition", "iterative_improvement", "custom"
]
CUSTOM_PLACEHOLDERS = (
    "history",
    "own_position",
    "current_round",
    "round",
    "model_name",
    "question",
    "debater_number",
)
# Any word in braces, so that a misspelled placeholder is reported.
_PLACEHOLDER = re.compile(r"\{( *[^\W\d]\w* *)\}")


class ForumSettings(ManySeatSettings):
    """Several models argue for their positions until a judge stops them or only one is left."""

    protocol: ClassVar[str] = "forum"
    use_when = "Several answers are possible: open questions where opinions differ."
    small_rounds = MappingProxyType({"max_rounds": 2})
    used_by = MappingProxyType(
        {
            "propose": (
                "seats",
                "max_tool_calls",
                "debate_format",
                "custom_format_prompt",
                "anonymous",
            ),
            "conviction_check": ("seats", "verify_concessions"),
            "judge_continue": ("judge", "judge_mode", "max_rounds", "debate_if"),
            "synthesize": ("seats", "judge"),
            "score": ("judge",),
        }
    )

    judge_model: str = Field(
        "ollama:gemma3:27b",
        description="Model that ends the debate, gives the verdict and scores the answer.",
    )
    judge_mode: JudgeMode = Field(
        "external_judge",
        description="Who ends the debate: a judge, the seats themselves by conceding, or nobody.",
    )
    debate_format: DebateFormat = Field(
        "free_discussion", description="How the seats should treat each other's positions."
    )
    custom_format_prompt: str = Field(
        "", description="The prompt for every turn if debate_format is custom."
    )
    max_rounds: int = Field(5, ge=1, le=50, description="Maximum number of rounds.")
    verify_concessions: bool = Field(
        True, description="Ask again if a concession does not name and quote an argument."
    )
    anonymous: bool = Field(
        False, description="Show the seats to each other as Debater 1, 2, ... instead of by name."
    )

    @model_validator(mode="after")
    def _require_judge_model(self) -> Self:
        given = self.model_fields_set
        unnamed = "seats" in given and "judge_model" not in given
        if self.judge_mode == "external_judge" and (unnamed or not self.judge_model.strip()):
            raise ValueError(
                "judge_mode external_judge needs a judge; name its model with "
                "--set judge_model=PROVIDER:NAME, or set judge_mode to self_convergence or "
                "display_only"
            )
        return self

    @model_validator(mode="after")
    def _check_custom_prompt(self) -> Self:
        custom, prompt = self.debate_format == "custom", self.custom_format_prompt.strip()
        if custom and not prompt:
            raise ValueError("debate_format custom needs a custom_format_prompt")
        if prompt and not custom:
            raise ValueError("custom_format_prompt is only used with debate_format custom")
        strangers = [n for n in _PLACEHOLDER.findall(prompt) if n not in CUSTOM_PLACEHOLDERS]
        if strangers:
            known = ", ".join(f"{{{name}}}" for name in CUSTOM_PLACEHOLDERS)
            raise ValueError(
                f"custom_format_prompt has an unknown placeholder {{{strangers[0]}}}; "
                f"known are {known}"
            )
        return self

    def build_seats(self) -> list[Seat]:
        judged = self.judge_mode != "display_only" and self.judge_model.strip()
        return super().build_seats() if judged else self.debaters()
