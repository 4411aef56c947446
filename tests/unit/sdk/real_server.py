"""A small HTTP server on loopback that answers what the test says, for the transports and the command line."""

import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from twiceshy._transports.base import Reply

Handler = Callable[[str, str, dict[str, str], bytes], Reply]


@contextmanager
def serving(handler: Handler) -> Iterator[str]:
    """Answer requests (method, path, headers, body) with the handler; give the URL."""

    class Requests(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            reply = handler(self.command, self.path, dict(self.headers.items()), body)
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.content_type)
            self.send_header("Content-Length", str(len(reply.body)))
            if reply.retry_after is not None:
                self.send_header("Retry-After", reply.retry_after)
            if 300 <= reply.status < 400:
                self.send_header("Location", "/elsewhere")
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST = do_PUT = _answer  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Requests)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
