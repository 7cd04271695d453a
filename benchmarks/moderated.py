import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any
from uuid import uuid4

from benchmarks.harness import QUESTION, Result, data_home
from contend.graph.settings.moderated import ADVOCATE

FOLDER_LIMIT_MS = 5.0
_TURNS, _WORDS = 80, 250
# A statement: requested, made, its claims listed, then all three checked at once.
_STATEMENT = [1, 1, 1, 3]
# Two openings, four statements in the round and its summary, two closings and the end; then three
# stages are scored in both orders, all at once, and the debate is summarized.
STEPS = [*_STATEMENT * 2, *_STATEMENT * 4, 1, *_STATEMENT * 2, 1, 6, 1]


def results() -> list[Result]:
    return [_folder()]


def moderated_settings() -> Any:
    from contend.graph.settings import ModeratedSettings

    roles = ("advocate", "moderator", "fact_checker", "judge")
    models = {f"{role}_model": "openai:floor" for role in roles}
    sides = [{"name": "Ann", "position": "Yes."}, {"name": "Ben", "position": "No."}]
    more = {"round_count": 1, "fact_check": True, "debate_format": "competitive"}
    calm = {"max_retries": 0, "templates": False}
    return ModeratedSettings.model_validate({"positions": sides, **models, **more, **calm})


def _folder() -> Result:
    from contend.debates.exports.folder import Folder, FolderState
    from contend.graph.protocols.base import strategy_for

    with data_home() as home:
        stored, state = _long_debate()
        plan: Any = strategy_for(moderated_settings()).folder_plan
        turns, spent = state["turns"], []
        nothing_yet = FolderState("running", None, state | {"turns": []})
        folder = Folder(stored, plan).begin(nothing_yet)  # imports and caches
        for count in range(1, len(turns) + 1):
            began = time.perf_counter()
            folder.update(FolderState("running", None, state | {"turns": turns[:count]}))
            spent.append(1000 * (time.perf_counter() - began))
        bare = median(_bare_write(home) for _ in range(_TURNS))
    note = f"median of {_TURNS} turns of {_WORDS} words; a bare write and rename {bare:.1f} ms"
    return Result("the folder, per turn", median(spent), FOLDER_LIMIT_MS, "ms", note)


def _bare_write(home: Path) -> float:
    began = time.perf_counter()
    fresh = home / "bare.new"
    fresh.write_text("word " * _WORDS)
    fresh.replace(home / "bare")
    return 1000 * (time.perf_counter() - began)


def _long_debate() -> tuple[Any, Any]:
    from contend.debates.record import StoredDebate
    from contend.graph.state import Turn

    settings, now = moderated_settings(), datetime.now(UTC)
    text = " ".join(f"word{n}" for n in range(_WORDS))
    sides = [seat for seat in settings.build_seats() if seat.role == ADVOCATE]
    turns = [
        Turn(
            id=f"r{at}.argument.{sides[at % 2].id}",
            round=at // 4,
            phase="argument",
            seat=sides[at % 2].id,
            role=sides[at % 2].role,
            model="openai:floor",
            text=text,
            started_at=now,
            ended_at=now,
        )
        for at in range(_TURNS)
    ]
    state = {"question": QUESTION, "seats": settings.build_seats(), "round": 1, "turns": turns}
    about = {"protocol": "moderated", "question": QUESTION, "status": "running", "error": None}
    times = {"created_at": now.isoformat(), "updated_at": now.isoformat(), "last_seq": 0}
    kept = {"settings": settings.model_dump(mode="json"), "state": {}, "demonstration": False}
    return StoredDebate(id=str(uuid4()), user_rating=None, **about, **times, **kept), state
