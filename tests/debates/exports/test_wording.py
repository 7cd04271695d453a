"""The words shown to people."""

from typing import get_args

from contend.debates.exports.wording import STOP_WORDS, usage_words
from contend.graph.stop_reasons import StopReason


def test_every_stop_reason_has_words() -> None:
    assert set(STOP_WORDS) == set(get_args(StopReason))


def test_cached_tokens_are_part_of_the_input() -> None:
    usage = {"input_tokens": 2000, "output_tokens": 30, "cached_tokens": 1500}
    assert usage_words(usage) == "2,000 in (1,500 cached), 30 out"
    assert usage_words(usage | {"cached_tokens": None}) == "2,000 in, 30 out"
