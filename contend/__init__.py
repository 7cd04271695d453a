"""The public Python API of Contend. All other modules are private.

    import contend

    record = contend.ask("Should we rewrite it in Rust?", model="openai:gpt-5-mini")
    print(record.final_answer)

Importing this module is fast, because its contents are loaded on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from contend.api import (
        Debate,
        Participant,
        aask,
        advocate,
        ask,
        create_debate,
        fact_checker,
        judge,
        moderator,
    )
    from contend.graph.errors import BadInput, ModelFailed
    from contend.graph.record import DebateRecord
    from contend.graph.settings import (
        AdversarialSettings,
        ForecastSettings,
        ForumSettings,
        ModeratedSettings,
        RefineSettings,
    )

    __version__: str

__all__ = [
    "AdversarialSettings",
    "BadInput",
    "Debate",
    "DebateRecord",
    "ForecastSettings",
    "ForumSettings",
    "ModelFailed",
    "ModeratedSettings",
    "Participant",
    "RefineSettings",
    "__version__",
    "aask",
    "advocate",
    "ask",
    "create_debate",
    "fact_checker",
    "judge",
    "moderator",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("contend")
    if name not in __all__:
        raise AttributeError(f"module 'contend' has no attribute '{name}'")
    if name.endswith("Settings"):
        home = "contend.graph.settings"
    elif name in ("BadInput", "ModelFailed"):
        home = "contend.graph.errors"
    else:
        home = "contend.graph.record" if name == "DebateRecord" else "contend.api"
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
