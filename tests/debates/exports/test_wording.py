"""The words shown to people."""

from typing import get_args

from contend.debates.exports.wording import STOP_WORDS
from contend.graph.stop_reasons import StopReason


def test_every_stop_reason_has_words() -> None:
    assert set(STOP_WORDS) == set(get_args(StopReason))
