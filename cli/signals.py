import asyncio
import signal
from collections.abc import Callable

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


def on_stop_signal(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        try:
            loop.add_signal_handler(number, stop)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda *_: loop.call_soon_threadsafe(stop))
