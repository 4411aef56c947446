"""What a process has lately looked up and may keep, so many and no more."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The latest values by key; beyond `limit` the least lately used go first."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._values: OrderedDict[K, V] = OrderedDict()

    def get(self, key: K) -> V | None:
        """Return the value that is kept under the key."""
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def take(self, key: K) -> V | None:
        """Return the value that is kept under the key, and keep it no longer."""
        return self._values.pop(key, None)

    def keep(self, key: K, value: V) -> None:
        """Keep a value."""
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._limit:
            self._values.popitem(last=False)
