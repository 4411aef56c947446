"""JSON over HTTP with the standard library: one connection a request, no proxy, and nothing is sent twice."""

from http.client import HTTPConnection, HTTPException
from typing import Final, TypeVar
from urllib.parse import urlsplit

import msgspec

T = TypeVar("T")
_PATIENCE_SECONDS: Final = 30.0


class Refused(Exception):
    """A service answered with an error, or with something that cannot be read."""


class JsonService:
    """A service on this machine that speaks JSON."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.url: Final = url
        self._host: Final = parts.hostname or ""
        self._port: Final = parts.port

    def get(self, path: str, kind: type[T]) -> T:
        """Read something. Raises OSError, HTTPException, Refused."""
        return self._ask("GET", path, None, kind)

    def post(self, path: str, body: object, kind: type[T]) -> T:
        """Send something and read the answer. Raises OSError, HTTPException, Refused."""
        return self._ask("POST", path, msgspec.json.encode(body), kind)

    def put(self, path: str, body: object, kind: type[T]) -> T:
        """Declare something and read the answer. Raises OSError, HTTPException, Refused."""
        return self._ask("PUT", path, msgspec.json.encode(body), kind)

    def _ask(self, method: str, path: str, body: bytes | None, kind: type[T]) -> T:
        connection = HTTPConnection(self._host, self._port, timeout=_PATIENCE_SECONDS)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        if response.status >= 400:
            raise Refused(f"{method} {self.url}{path}: {response.status} {content.decode(errors='replace')}")
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise Refused(f"{method} {self.url}{path}: the answer cannot be read: {error}") from error


NO_ANSWER: Final = (OSError, HTTPException, Refused)
"""What a request raises that was not answered as it should."""
