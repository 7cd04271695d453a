import re
from typing import get_args

from contend.debates.exports.wording import DEGRADED_WORDS, STOP_WORDS, usage_words
from contend.graph.stop_reasons import StopReason
from tests.cli.support import ROOT


def test_every_stop_reason_has_a_label() -> None:
    assert set(STOP_WORDS) == set(get_args(StopReason))


def test_cached_tokens_are_part_of_the_input() -> None:
    usage = {"input_tokens": 2000, "output_tokens": 30, "cached_tokens": 1500}
    assert usage_words(usage) == "2,000 in (1,500 cached), 30 out"
    assert usage_words(usage | {"cached_tokens": None}) == "2,000 in, 30 out"


def test_every_degradation_has_a_label_in_exports_and_on_the_web_page() -> None:
    reporting = re.compile(r'report_(?:problem|missing)\((?:[^()"]|\([^()]*\))*"([a-z_]+)"')
    sources = [path.read_text("utf-8") for path in (ROOT / "nodes").rglob("*.py")]
    reported = {what for source in sources for what in reporting.findall(source)} - {"round"}
    assert {"no_references", "no_numbers", "unreadable", "sat_out"} <= reported
    assert reported <= DEGRADED_WORDS.keys()
    script = (ROOT / "service" / "web" / "labels.js").read_text("utf-8")
    missing = [what for what in DEGRADED_WORDS if not re.search(rf"^  {what}: ", script, re.M)]
    assert missing == []
