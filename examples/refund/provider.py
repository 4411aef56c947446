"""A small payment provider: its own process, its own ledger file, and no idempotency whatsoever.

A refund is in the file, on the disk, before it is answered. Whoever asks twice pays twice.
"""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock


class Ledger:
    """The refunds that were made, one line of JSON each."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lock = Lock()

    def add(self, payment: str, amount: int) -> dict[str, object]:
        """Make a refund, whatever was made before."""
        with self._lock, self._file.open("a+") as lines:
            lines.seek(0)
            entry = {"refund": f"re-{len(lines.readlines()) + 1}", "payment": payment, "amount": amount}
            lines.write(json.dumps(entry) + "\n")
            lines.flush()
            os.fsync(lines.fileno())
        return entry


def serve(file: Path) -> None:
    """Serve on a free port of the loopback, and print the address."""
    ledger = Ledger(file)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            answer = json.dumps(ledger.add(str(body["payment"]), int(body["amount"]))).encode()
            self.send_response(201)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the standard library's name
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"The provider serves http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(Path(sys.argv[1]))
