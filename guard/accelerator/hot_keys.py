"""Hot keys: how many begins found another's lease, in one sorted set a minute, of each tenant.

They show an operator where agents wait for each other; nothing else depends on them. A member says its key and its
tool, sealed, so that nobody else's text is shown; a count is whatever Redis says.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, Final

from guard.accelerator.keyring import Secrets
from guard.accelerator.pipe import Command
from guard.core.effects import Key, TenantId
from guard.ports.accelerator import WINDOW_MINUTES, HotKey

MOST_KEYS: Final = 1000
"""Of a tenant and a minute; those that were counted least are dropped."""
_KEPT_SECONDS: Final = 60 * (WINDOW_MINUTES + 2)
_SEAL_BYTES: Final = 12
_KEY_BYTES: Final = 32
_MOST_COUNTED: Final = 2**40


class Counts:
    """Begins that were counted in this process and not told yet."""

    def __init__(self) -> None:
        self._counts: defaultdict[TenantId, Counter[tuple[Key, str]]] = defaultdict(Counter)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, tenant: TenantId, tool: str, key: Key) -> bool:
        """Count one; say whether there was room for it."""
        counts = self._counts[tenant]
        has_room = len(counts) < MOST_KEYS or (key, tool) in counts
        if has_room:
            counts[key, tool] += 1
        return has_room

    def take(self) -> dict[TenantId, Counter[tuple[Key, str]]]:
        """Return all counts, and begin anew."""
        taken, self._counts = self._counts, defaultdict(Counter)
        return taken


def commands_of(secrets: Secrets, counts: Counter[tuple[Key, str]]) -> Iterable[Command]:
    """Return what adds a tenant's counts to those of this minute."""
    name = _name(secrets, _minute())
    for (key, tool), times in counts.items():
        yield ("ZINCRBY", name, times, _member(secrets, key, tool))
    yield ("ZREMRANGEBYRANK", name, 0, -MOST_KEYS - 1)
    yield ("EXPIRE", name, _KEPT_SECONDS)


def questions(secrets: Secrets, limit: int) -> list[Command]:
    """Return what asks for the hottest keys of each of the last minutes."""
    this = _minute()
    names = (_name(secrets, minute) for minute in range(this - WINDOW_MINUTES + 1, this + 1))
    return [("ZREVRANGE", name, 0, min(4 * limit, MOST_KEYS) - 1, "WITHSCORES") for name in names]


def hottest(secrets: Secrets, answers: Iterable[Any], limit: int) -> list[HotKey]:
    """Return the keys that were counted most in all minutes together, of those whose seal proves them."""
    counted: Counter[tuple[Key, str]] = Counter()
    for answer in answers:
        for member, score in _scored(answer):
            read = _read(secrets, member)
            if read is not None and 0 < score < _MOST_COUNTED:
                counted[read] += round(score)
    most = sorted(counted.items(), key=lambda item: (-item[1], item[0]))[:limit]
    return [HotKey(key=key, tool=tool, begins=begins) for (key, tool), begins in most]


def _scored(answer: Any) -> Iterable[tuple[bytes, float]]:
    """Return members and scores as the client library gives them: pairs, or one after the other."""
    if not isinstance(answer, list):
        return ()
    flat = [part for item in answer for part in (item if isinstance(item, list | tuple) else (item,))]
    pairs = zip(flat[::2], flat[1::2], strict=False)
    return [(member, number) for member, score in pairs if isinstance(member, bytes) and (number := _number(score)) > 0]


def _number(score: Any) -> float:
    try:
        return float(score)
    except (TypeError, ValueError):
        return 0.0


def _name(secrets: Secrets, minute: int) -> bytes:
    return secrets.name(b"hot", b"%d" % minute)


def _minute() -> int:
    """Return the minute by this machine's clock: nothing depends on it but which counts stand together."""
    return int(time.time()) // 60


def _member(secrets: Secrets, key: Key, tool: str) -> bytes:
    text = key + tool.encode()
    return secrets.seal(b"twiceshy hot 1:" + text)[:_SEAL_BYTES] + text


def _read(secrets: Secrets, member: bytes) -> tuple[Key, str] | None:
    key, tool = Key(member[_SEAL_BYTES : _SEAL_BYTES + _KEY_BYTES]), member[_SEAL_BYTES + _KEY_BYTES :]
    try:
        text = tool.decode()
    except UnicodeDecodeError:
        return None
    return (key, text) if len(key) == _KEY_BYTES and _member(secrets, key, text) == member else None
