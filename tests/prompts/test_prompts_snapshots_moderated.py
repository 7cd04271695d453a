"""Snapshots of the prompts of a moderated debate; see test_prompts_snapshots."""

from tests.prompts.test_prompts_snapshots import FOLDER, WRITE, sheet
from tests.support.floor import asked_for, debate, floor_cast, with_block
from tests.support.scripted import Cast

CLAIM = "The audit of 2024 found 50 holes."
PARTS = {
    "moderator": ("request", "summary", "end", "final"),
    "ann": ("opening", "argument", "rebuttal", "closing"),
    "ben": ("correction",),
    "checker": ("claims", "check"),
    "judge": ("stage",),
}


def cast() -> Cast:
    """Return a debate in which one claim is contradicted and corrected."""
    return floor_cast(
        checker={
            "claims": lambda sent: with_block(
                "One.", claims=[CLAIM] if "Ben's argument." in sent.user else []
            )(sent),
            "check": with_block("No.", verdict="contradicted", source="own knowledge", why="12."),
        }
    )


async def test_prompts_match_the_snapshots() -> None:
    played = await debate(
        cast(), round_count=1, max_round_count=2, moderator_may_adjust=True, fact_check=True
    )
    for model, parts in PARTS.items():
        for part in parts:
            asked = [sent for sent in played.cast.sent_to(model) if asked_for(sent) == part]
            # The calls of the judge are made in parallel, in no order.
            told = min(sheet(sent.messages) for sent in asked)
            file = FOLDER / "moderated" / f"{model}_{part}.md"
            if WRITE:
                file.parent.mkdir(exist_ok=True)
                file.write_text(told, encoding="utf-8")
            assert told == file.read_text(encoding="utf-8"), file.name


async def test_the_positions_prompt_matches_the_snapshot() -> None:
    undecided = [{"name": name, "model": f"scripted:{name.lower()}"} for name in ("Ann", "Ben")]
    played = await debate(cast(), positions=undecided, round_count=0, debate_format="competitive")
    (sent,) = (s for s in played.cast.sent_to("moderator") if asked_for(s) == "positions")
    file = FOLDER / "moderated" / "moderator_positions.md"
    if WRITE:
        file.write_text(sheet(sent.messages), encoding="utf-8")
    assert sheet(sent.messages) == file.read_text(encoding="utf-8")
