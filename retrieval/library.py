"""The library of reasoning templates. It ships empty in this release, and says so."""

from dataclasses import dataclass

from graph.state import TemplateUse


@dataclass(frozen=True)
class Found:
    """The templates for a question, and one sentence for whoever watches."""

    templates: tuple[TemplateUse, ...]
    notice: str


async def find_templates() -> Found:
    """The best templates for a question: none, as long as the library holds none."""
    return Found((), "The template library is empty; the Proposer starts without a scaffold.")
