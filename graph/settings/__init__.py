from contend.graph.settings.adversarial import AdversarialSettings
from contend.graph.settings.base import (
    MAX_QUESTION_CHARS,
    DebateSettings,
    FolderPlan,
    OutputFormat,
    SeatFiles,
    data_home,
    outputs_home,
    snake_case,
)
from contend.graph.settings.forecast import ForecastSettings
from contend.graph.settings.forum import ForumSettings
from contend.graph.settings.moderated import FORMATS, ModeratedSettings, PositionChoice
from contend.graph.settings.refine import RefineSettings
from contend.graph.settings.seats import SeatChoice, first_duplicate_position
from contend.graph.settings.stored import read_stored

SETTINGS: dict[str, type[DebateSettings]] = {
    "adversarial": AdversarialSettings,
    "forum": ForumSettings,
    "refine": RefineSettings,
    "forecast": ForecastSettings,
    "moderated": ModeratedSettings,
}

__all__ = [
    "FORMATS",
    "MAX_QUESTION_CHARS",
    "SETTINGS",
    "AdversarialSettings",
    "DebateSettings",
    "FolderPlan",
    "ForecastSettings",
    "ForumSettings",
    "ModeratedSettings",
    "OutputFormat",
    "PositionChoice",
    "RefineSettings",
    "SeatChoice",
    "SeatFiles",
    "data_home",
    "first_duplicate_position",
    "outputs_home",
    "read_stored",
    "snake_case",
]
