"""Enables garbage collection after the imports, which are faster without it."""

import gc

# Streams create many short-lived objects. With Python's default thresholds, collecting them takes a
# quarter of a busy service's time.
_THRESHOLDS = (50_000, 20, 100)


def start_collecting() -> None:
    """Enable garbage collection, but only of objects created from now on."""
    if not gc.isenabled():
        gc.freeze()
        gc.set_threshold(*_THRESHOLDS)
        gc.enable()
