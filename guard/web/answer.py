"""An answer before it is sent: what the hot verbs write themselves and the framework's routes return."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Self, cast

import msgspec
from litestar import Response
from litestar.types import HTTPScope, Send

from twiceshy_contract.wire import CONTRACT_HEADER, CONTRACT_VERSION, REQUEST_ID_HEADER

JSON: Final = "application/json"
REQUEST_ID: Final = REQUEST_ID_HEADER.lower().encode()
CONTRACT: Final = (CONTRACT_HEADER.lower().encode(), str(CONTRACT_VERSION).encode())
"""What every answer says of the service: an older one passes over what it does not know."""
WHOLE: Final = "twiceshy.whole"
"""The extension of a scope by which a server takes answers whole."""
Whole = Callable[[HTTPScope, int, bytes, bytes], bool]
"""Takes a scope, a status, the head's lines and the body; says no where it takes no whole answer: nothing was sent."""
_NO_EXTENSIONS: Final[Mapping[str, object]] = MappingProxyType({})
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class Answer(msgspec.Struct, frozen=True):
    """A status, a body and its kind. `said` names the decision or the problem, for the log and the metrics."""

    status: int
    body: bytes
    said: str = ""
    media_type: str = JSON
    headers: Mapping[str, str] = _NO_HEADERS

    def response(self) -> Response[bytes]:
        """Return what an ordinary route returns."""
        return Response(self.body, status_code=self.status, media_type=self.media_type, headers=dict(self.headers))

    def with_next_seq(self, next_seq: int) -> Self:
        """Return the same, its body an object that says besides where the run's log goes on."""
        return msgspec.structs.replace(self, body=b'%b,"next_seq":%d}' % (self.body[:-1], next_seq))

    async def send_by(self, scope: HTTPScope, send: Send, request_id: str) -> None:
        """Send the answer over ASGI, or hand it over as a whole where the server takes it so."""
        headers = [
            (b"content-type", self.media_type.encode()),
            (b"content-length", b"%d" % len(self.body)),
            (REQUEST_ID, request_id.encode()),
            CONTRACT,
        ]
        if self.headers:
            headers += [(name.lower().encode(), value.encode()) for name, value in self.headers.items()]
        whole = (scope.get("extensions") or _NO_EXTENSIONS).get(WHOLE)
        if whole is not None:
            head = b"".join([b"%b: %b\r\n" % pair for pair in headers])
            if cast("Whole", whole)(scope, self.status, head, self.body):
                return
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": False})


def json_answer(
    value: msgspec.Struct, status: int = 200, *, said: str = "", headers: Mapping[str, str] = _NO_HEADERS
) -> Answer:
    """Write a wire struct as JSON."""
    return Answer(status, _encoder.encode(value), said, JSON, headers)


_encoder: Final = msgspec.json.Encoder()
