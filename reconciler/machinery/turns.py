"""Bounds the writes to one namespace at the same time.

Writes to the pods of one namespace can be slow, because a webhook for these pods does not answer. A release of hundreds
of pods must not keep all slots of the client meanwhile.
"""

import asyncio
from weakref import WeakValueDictionary


class Turns:
    """`at_once`: how many writes to one namespace may be in flight."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._semaphores: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    def of(self, namespace: str) -> asyncio.Semaphore:
        """The semaphore of the namespace. It exists as long as somebody uses it."""
        found = self._semaphores.get(namespace)
        if found is None:
            found = self._semaphores[namespace] = asyncio.Semaphore(self._at_once)
        return found
