"""What this process keeps in memory of people's words to save work: each value has its owner, and erasing empties all.

A value is found under the owner that it was kept for alone. Else the time of one's own question would tell whether
somebody else has said, asked or forgotten the same (tests/integration/test_cache_owners.py).
"""

import threading
import uuid
from collections.abc import Hashable
from typing import Final, Generic, Protocol, TypeVar
from weakref import WeakSet

from cachetools import LRUCache

V = TypeVar("V")
Owner = uuid.UUID | str  # a conversation, a person or a namespace: whoever asks there may read all of it


class Emptied(Protocol):
    """Anything that keeps people's words, or what was worked out from them."""

    def clear(self) -> None:
        """Empty it."""
        ...


_all: Final[WeakSet[Emptied]] = WeakSet()


def emptied_by_erasing(cache: Emptied) -> None:
    """Empty a cache whenever something is erased, in this process or another one, for as long as it exists."""
    _all.add(cache)


def empty_caches() -> None:
    """Empty every cache. Must run after every erasure of text, in every process."""
    for cache in list(_all):
        cache.clear()


class OwnedCache(Generic[V]):
    """Keeps the last `most` values, each for its owner. Several threads may use it."""

    def __init__(self, most: int) -> None:
        self._values: LRUCache[tuple[Owner, Hashable], V] = LRUCache(most)
        self._lock = threading.Lock()
        emptied_by_erasing(self)

    def __len__(self) -> int:
        return len(self._values)

    def get(self, owner: Owner, key: Hashable = None) -> V | None:
        """What is kept under a key for its owner. None: nothing is."""
        with self._lock:
            return self._values.get((owner, key))

    def put(self, owner: Owner, value: V, key: Hashable = None) -> None:
        """Keep a value for its owner, in place of the one that has not been used for longest."""
        with self._lock:
            self._values[owner, key] = value

    def drop(self, owner: Owner, key: Hashable = None) -> None:
        """Drop what is kept under a key for its owner, if anything is."""
        with self._lock:
            self._values.pop((owner, key), None)

    def clear(self) -> None:
        """Drop all values of all owners."""
        with self._lock:
            self._values.clear()
