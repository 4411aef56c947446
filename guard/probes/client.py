"""Providers over HTTP: one request, nothing followed, an answer of bounded size in bounded time.

No proxy and no credentials are taken from the environment, no cookie is kept, and nothing is decompressed: a small
answer cannot become a large one.
"""

from typing import Final

import aiohttp
from yarl import URL

from guard.core.probing import MAX_ANSWER_BYTES, ProbeReply, ProbeRequest
from guard.ports.probing import NoReply

_CHUNK: Final = 2**16
_HEADERS: Final = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "Twiceshy"}
_WORDS: Final[tuple[tuple[type[Exception], str], ...]] = (
    (aiohttp.ClientConnectorDNSError, "its host is not known"),
    (aiohttp.ClientConnectorCertificateError, "its certificate is not trusted"),
    (aiohttp.ClientSSLError, "no encrypted connection could be made"),
    (aiohttp.ClientConnectorError, "no connection could be made"),
    (aiohttp.ClientResponseError, "its answer is no HTTP"),
    (aiohttp.ClientPayloadError, "its answer broke off"),
    (aiohttp.ClientConnectionError, "the connection broke"),
    (OSError, "the connection broke"),
)
"""What errors mean, the first that fits; their own words may hold what was sent, and so a secret."""


class Client:
    """Sends probes from one event loop."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    async def ask(self, request: ProbeRequest) -> ProbeReply:
        """Send a request once; follow nothing and read no more than an answer may have. Raises NoReply."""
        try:
            async with self._opened().request(
                request.method,
                URL(request.url, encoded=True),
                headers=_HEADERS | request.headers,
                data=request.body,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=request.timeout_seconds),
            ) as answer:
                headers = {name.lower(): value for name, value in answer.headers.items()}
                return ProbeReply(status=answer.status, headers=headers, body=await _body(answer))
        except TimeoutError as error:
            raise NoReply(f"it did not answer within {request.timeout_seconds:g} s") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NoReply(_words(error)) from error

    async def close(self) -> None:
        """Close what is open."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(force_close=True),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


def _words(error: Exception) -> str:
    said = next((words for kind, words in _WORDS if isinstance(error, kind)), "it failed")
    return f"{said} ({type(error).__name__})"


async def _body(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_chunked(_CHUNK):
        body += chunk
        if len(body) > MAX_ANSWER_BYTES:
            raise NoReply(f"its answer is larger than {MAX_ANSWER_BYTES // 2**20} MiB")
    return bytes(body)
