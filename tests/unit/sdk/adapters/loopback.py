"""A server on the loopback that answers as a test wrote it down."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias

PATIENCE = 20


class Handler(BaseHTTPRequestHandler):
    """One request at the server."""

    protocol_version = "HTTP/1.1"
    server: "Loopback"
    body: bytes

    def do_POST(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.answer(self)

    do_GET = do_POST  # noqa: N815 - the name that http.server calls

    def log_message(self, *_: object) -> None:
        pass

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    def say(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        """Answer at once."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def begin(self, kind: str = "text/event-stream", **headers: str) -> None:
        """Begin an answer that comes in parts."""
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def part(self, data: bytes) -> None:
        """Send a part."""
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def end(self) -> None:
        """Send that there are no more parts."""
        self.wfile.write(b"0\r\n\r\n")

    def break_off(self) -> None:
        """Close the connection in the middle."""
        self.close_connection = True


Answering: TypeAlias = Callable[[Handler], None]


class Loopback(ThreadingHTTPServer):
    """The server, what it was asked, and what it says: the first answer to the first request, the last one for ever."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, *answers: Answering) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[Handler] = []
        self._answers = list(answers)
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, handler: Handler) -> None:
        with self._lock:
            self.requests.append(handler)
            answering = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        answering(handler)

    def handle_error(self, *_: object) -> None:
        pass


@contextmanager
def serving(*answers: Answering) -> Iterator[Loopback]:
    """Serve in the block; afterwards nobody is there any more."""
    server = Loopback(*answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def says(value: Any, status: int = 200, **headers: str) -> Answering:
    """Answer with JSON."""
    return lambda handler: handler.say(status, json.dumps(value).encode(), **headers)


def streams(
    parts: Sequence[bytes], *, breaks: bool = False, before_each: Callable[[int], None] | None = None
) -> Answering:
    """Answer with an event stream."""

    def answer(handler: Handler) -> None:
        handler.begin()
        for number, part in enumerate(parts):
            if before_each is not None:
                before_each(number)
            handler.part(part)
        handler.break_off() if breaks else handler.end()

    return answer


def free_url() -> str:
    """Return an address at which nobody listens."""
    with serving(says({})) as server:
        return server.url
