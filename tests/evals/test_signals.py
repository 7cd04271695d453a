"""Reading decisions from realistic model replies."""

import pytest
from langsmith import testing

from contend.evals.signals import UNREADABLE, SignalCase, read_signals, signal_cases


@pytest.mark.langsmith
@pytest.mark.parametrize("case", signal_cases(), ids=lambda case: case.id)
def test_a_reply_is_read_correctly_or_as_unreadable(case: SignalCase) -> None:
    testing.log_inputs({"reader": case.reader, "text": case.text})
    testing.log_reference_outputs({"expected": case.expected})
    (read,) = read_signals([case])
    testing.log_outputs({"read": read.read})
    assert read.read in (case.expected, UNREADABLE)


def test_no_reply_is_misread_and_few_are_unreadable() -> None:
    read = read_signals(signal_cases())
    assert len(read) == 40
    assert [each.case.id for each in read if each.is_misread] == []
    assert sum(each.is_right for each in read) >= 38


def test_every_reader_has_unreadable_cases() -> None:
    cases = signal_cases()
    for reader in ("decision", "conviction", "critique", "rating"):
        meant = {case.expected for case in cases if case.reader == reader}
        assert "unreadable" in meant
        assert len(meant) >= 3
