"""Short debates for each protocol: `contend ask` options and model scripts."""

from typing import Any

from tests.cli.actions.test_ask_moderated import SIDES
from tests.cli.support import QUESTION, debaters
from tests.support.floor_server import floor_script
from tests.support.forecasting import forecasters

_SEATS = [word for name in ("ann", "ben", "cyd") for word in ("--seat", f"{name}=openai:{name}")]
_JUDGED = [*_SEATS, "--set", "judge_model=openai:judge"]
_OUTCOMES = ["--outcome", "yes: It opens", "--outcome", "no: It does not"]
_OPTIONS: dict[str, list[str]] = {
    "adversarial": ["-m", "openai:m", "--set", "max_rounds=3"],
    "forum": [*_JUDGED, "--set", "max_rounds=3"],
    "refine": [*_JUDGED, "--set", "max_debate_rounds=2"],
    "moderated": ["-m", "openai:m", *SIDES, "--set", "round_count=1"],
    "forecast": ["-m", "openai:m", *_OUTCOMES],
}
PROTOCOLS = list(_OPTIONS)


def ask_in(protocol: str) -> list[str]:
    quick = ["--set", "retry_wait=0.01"]
    return ["ask", QUESTION, "-p", protocol, *quick, *_OPTIONS[protocol]]


def script_of(protocol: str) -> Any:
    scripts = {"moderated": floor_script(), "forecast": forecasters()}
    return scripts.get(protocol) or debaters()
