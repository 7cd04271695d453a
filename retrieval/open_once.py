"""A cache of things that are slow to open, opened once per process."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary

Thing = TypeVar("Thing")


class SharedCache(Generic[Thing]):
    """Keeps opened things by key and drops the least recently used."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._things: OrderedDict[Hashable, Thing] = OrderedDict()
        # A lock belongs to one event loop.
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Hashable, asyncio.Lock]] = (
            WeakKeyDictionary()
        )

    async def get(self, key: Hashable, make: Callable[[], Awaitable[Thing]]) -> Thing:
        """Return the thing; concurrent callers wait for one to open it."""
        locks = self._locks.setdefault(asyncio.get_running_loop(), {})
        async with locks.setdefault(key, asyncio.Lock()):
            if key not in self._things:
                self._things[key] = await make()
            self._things.move_to_end(key)
            while len(self._things) > self._most:
                self._things.popitem(last=False)
            return self._things[key]

    def forget(self, key: Hashable) -> None:
        self._things.pop(key, None)

    def clear(self) -> None:
        self._things.clear()
