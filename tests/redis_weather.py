"""The weather of Redis: what befalls it while a test asks a service that has it. No answer may change by it.

`fair`: nothing. `lying`: entries are stale, another's, foreign, flipped, oversized, bombs, of wrong types. `killed`: it
is killed and started again all the time, every other time without what it had. `partitioned`: all bytes are held up,
a second at a time.
"""

import shutil
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, get_args

from tests.brokers import ValkeyServer
from tests.redis_proxy import RedisProxy

Weather = Literal["fair", "lying", "killed", "partitioned"]
WEATHERS: Final[tuple[Weather, ...]] = get_args(Weather)
_SPELL_SECONDS: Final = 1.0
_GONE_SECONDS: Final = 0.3


def weather_of(path: Path) -> Weather:
    """Return the weather of a file of tests: always the same, and each weather is some file's."""
    return WEATHERS[zlib.crc32(path.name.encode()) % len(WEATHERS)]


class WeatheredRedis:
    """A Valkey behind a proxy, in one weather at a time."""

    def __init__(self) -> None:
        self._valkey = ValkeyServer()
        self._valkey.start()
        self._proxy = RedisProxy(self._valkey.port)
        self._proxy.__enter__()
        self._weather: Weather = "fair"
        self._over = threading.Event()
        self._raging: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where a service finds it."""
        return self._proxy.url

    def turn(self, weather: Weather) -> None:
        """Let the weather be this from now on."""
        if weather == self._weather:
            return
        self._calm()
        self._weather = weather
        rages: dict[Weather, Callable[[], None]] = {"killed": self._kill, "partitioned": self._part}
        if weather == "lying":
            self._proxy.lie = self._proxy.lies
        elif weather in rages:
            self._raging = threading.Thread(target=rages[weather], daemon=True)
            self._raging.start()

    def remove(self) -> None:
        """End it."""
        self._calm()
        self._proxy.__exit__()
        self._valkey.remove()

    def _calm(self) -> None:
        self._proxy.lie = None
        if self._raging is not None:
            self._over.set()
            self._raging.join()
            self._raging = None
            self._over.clear()

    def _kill(self) -> None:
        loses = False
        while not self._over.is_set():
            self._valkey.kill()
            if loses:
                shutil.rmtree(self._valkey.folder / "appendonlydir", ignore_errors=True)
            self._over.wait(_GONE_SECONDS)
            self._valkey.start()
            loses = not loses
            self._over.wait(_SPELL_SECONDS)

    def _part(self) -> None:
        while not self._over.is_set():
            self._proxy.hold_up()
            self._over.wait(_SPELL_SECONDS)
            self._proxy.pass_on()
            self._over.wait(_SPELL_SECONDS)
