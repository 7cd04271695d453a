"""Garbage collection during a debate."""

import gc

from contend.cli.garbage import start_collecting


def test_what_was_imported_is_not_collected_again_and_again() -> None:
    gc.disable()
    try:
        start_collecting()
        assert gc.isenabled()
        frozen = gc.get_freeze_count()
        assert frozen > 0
        start_collecting()
        assert gc.get_freeze_count() <= frozen  # a program that collects is left alone
    finally:
        gc.unfreeze()
        gc.enable()
