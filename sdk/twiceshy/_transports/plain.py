"""The fall-back on the standard library: one connection a request, for forked children and exotic platforms."""

import asyncio
import http.client
from urllib.parse import urlsplit

from twiceshy._transports.base import NoReply, Reply, Request, authorization, headers, new_request_id, no_reply
from twiceshy_contract.wire import CONTRACT_HEADER, REQUEST_ID_HEADER

_LARGEST_REPLY = 8 * 2**20


class PlainTransport:
    """Send requests with `http.client`."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url)
        self._is_secure = parts.scheme == "https"
        self._host = parts.hostname or ""
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._headers = headers(token)

    def send(self, request: Request) -> Reply | NoReply:
        """Send a request over a new connection."""
        kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
        connection = kind(self._host, self._port, timeout=request.timeout_seconds)
        request_id = new_request_id()
        sent = {**self._headers, **authorization(request.token), REQUEST_ID_HEADER: request_id}
        if request.body is not None:
            sent["Content-Type"] = "application/json"
        try:
            connection.request(request.method, self._prefix + request.path, request.body, sent)
            response = connection.getresponse()
            return Reply(
                status=response.status,
                content_type=response.getheader("Content-Type", ""),
                body=response.read(_LARGEST_REPLY),
                retry_after=response.getheader("Retry-After"),
                contract=response.getheader(CONTRACT_HEADER),
            )
        except (OSError, http.client.HTTPException) as error:
            return no_reply(f"{type(error).__name__}: {error}", request_id)
        finally:
            connection.close()

    async def send_async(self, request: Request) -> Reply | NoReply:
        """Send a request from a thread."""
        return await asyncio.to_thread(self.send, request)

    def close(self) -> None:
        """Do nothing: no connection is kept."""

    async def close_async(self) -> None:
        """Do nothing: no connection is kept."""
