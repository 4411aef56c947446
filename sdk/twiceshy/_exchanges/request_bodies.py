"""The body of a request of requests, which may be bytes, text, a file or what yields parts."""

import io
from typing import Any


def body_of(request: Any) -> bytes:
    """Return the body, and leave one behind that can be read again."""
    body = request.body
    if body is None or isinstance(body, bytes | bytearray):
        return bytes(body or b"")
    if isinstance(body, str):
        return body.encode()
    read = getattr(body, "read", None)
    if callable(read):
        data = read()
        whole = data.encode() if isinstance(data, str) else bytes(data)
    else:
        whole = b"".join(part.encode() if isinstance(part, str) else bytes(part) for part in body)
    request.body = io.BytesIO(whole)
    if isinstance(getattr(request, "_body_position", None), int):
        request._body_position = 0  # noqa: SLF001 - where a redirect begins to read it again
    return whole
