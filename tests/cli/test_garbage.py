import gc

from contend.cli.garbage import start_collecting


def test_imported_objects_are_excluded_from_garbage_collection() -> None:
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
