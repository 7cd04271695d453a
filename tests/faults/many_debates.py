"""Run many debates of all protocols in parallel and print how each ended."""

import asyncio
import gc
import json
import logging
import os
import sys
import traceback
from pathlib import Path
from typing import Any

from langsmith.run_trees import get_cached_client

from contend import aask
from contend.graph.errors import ModelFailed

AT_ONCE = 24
USUAL = {"retry_wait": 0.01, "templates": False}
# With --short-timeouts, for a server that stalls on purpose.
SHORT_TIMEOUTS = {"idle_timeout": 2, "first_token_timeout": 4, "total_timeout": 60}
SIDES = [
    {"name": "Ann", "position": "It should be done."},
    {"name": "Ben", "position": "It should not be done."},
]


def seats(model: str) -> list[dict[str, str]]:
    return [{"name": name, "model": model} for name in ("Ann", "Ben")]


def settings_of(protocol: str, model: str) -> dict[str, Any]:
    """Return settings of a short debate; each model belongs to one protocol."""
    more: dict[str, dict[str, Any]] = {
        "adversarial": {"min_rounds": 1, "max_rounds": 2},
        "forum": {"seats": seats(model), "max_rounds": 2, "judge_mode": "self_convergence"},
        "refine": {"seats": seats(model), "max_debate_rounds": 1},
        "moderated": {"positions": SIDES, "round_count": 1},
        "forecast": {"outcomes": ["yes: It opens", "no: It does not"], "overall_timeout": 300},
    }
    timeouts = SHORT_TIMEOUTS if "--short-timeouts" in sys.argv else {}
    return {**USUAL, **timeouts, **more[protocol]}


async def run(number: int, places: asyncio.Semaphore) -> dict[str, Any]:
    protocol = ("adversarial", "forum", "refine", "moderated", "forecast")[number % 5]
    provider = ("openai", "ollama")[number // 5 % 2]
    model = f"{provider}:{protocol}"
    ended: dict[str, Any] = {"protocol": protocol, "status": "failed", "degraded": []}
    async with places:
        try:
            record = await aask(
                f"Question {number}?", protocol, model=model, **settings_of(protocol, model)
            )
        except ModelFailed as failed:
            sys.stderr.write(traceback.format_exc())
            return ended | {"error": str(failed), "kind": failed.kind}
        except Exception as error:  # noqa: BLE001 - whatever else it is, the test must see it
            sys.stderr.write(traceback.format_exc())
            return ended | {"status": "broken", "error": f"{type(error).__name__}: {error}"}
    degraded = [each.what for each in record.degraded]
    return ended | {"status": record.status, "error": record.error, "degraded": degraded}


def megabytes() -> float:
    """Return the memory of this process after garbage collection."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def main(count: int) -> None:
    """Run a fifth of the debates to load everything that stays in memory, then the others."""
    places, ended, held = asyncio.Semaphore(AT_ONCE), [], []
    for numbers in (range(count // 5), range(count // 5, count)):
        ended += await asyncio.gather(*(run(number, places) for number in numbers))
        held.append(megabytes())
    sys.stdout.write(json.dumps({"ended": ended, "megabytes": held}))


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, stream=sys.stderr)
    asyncio.run(main(int(sys.argv[1])))
    get_cached_client().flush()
