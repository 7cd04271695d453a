"""Our readers on replies as models write them."""

from contend.evals.signals import read_signals, signal_cases


def test_no_reply_is_misread_and_few_are_unreadable() -> None:
    read = read_signals(signal_cases())
    assert len(read) == 40
    assert [each.case.id for each in read if each.is_misread] == []
    assert sum(each.is_right for each in read) >= 38


def test_every_reader_has_replies_it_must_not_read() -> None:
    cases = signal_cases()
    for reader in ("decision", "conviction", "critique", "rating"):
        meant = {case.expected for case in cases if case.reader == reader}
        assert "unreadable" in meant
        assert len(meant) >= 3
