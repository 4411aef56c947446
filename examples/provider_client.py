"""The provider as its clients see it: one request an action, with the key that makes it happen once."""

import json
from http.client import HTTPConnection
from typing import Final
from urllib.parse import urlsplit

from examples.provider import KEY_HEADER
from twiceshy import Rejected, current_effect

PROVIDER_VARIABLE: Final = "PROVIDER_URL"
_PATIENCE_SECONDS: Final = 10.0


class Provider:
    """Sends requests for the effect that the guard runs at the moment."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port

    def do(self, action: str, **arguments: object) -> dict[str, str]:
        """Do something once. Raises Rejected where it is refused for good, OSError where no answer comes."""
        connection = HTTPConnection(self._host, self._port, timeout=_PATIENCE_SECONDS)
        headers = {"Content-Type": "application/json", KEY_HEADER: current_effect().downstream_key}
        try:
            connection.request("POST", f"/{action}", json.dumps(arguments), headers)
            answer = connection.getresponse()
            body: dict[str, str] = json.loads(answer.read())
        finally:
            connection.close()
        if answer.status == 422:
            raise Rejected(body["error"])
        if answer.status >= 400:
            raise OSError(f"{action}: {answer.status} {body}")
        return body
