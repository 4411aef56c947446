"""A provider of rooms and payments: its own process, one ledger file, and an idempotency key that it honours.

What it did is a line of the ledger, on disk before it answers. A request that comes again with its key is answered
from the ledger and done once; that is what providers promise, and what a guard builds on when nobody knows.
"""

import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import click

KEY_HEADER: Final = "Idempotency-Key"


class Ledger:
    """The lines of the file, and which answer belongs to which key."""

    def __init__(self, file: Path) -> None:
        self._lock = threading.Lock()
        self._file = file.open("a+b", buffering=0)
        self._file.seek(0)
        lines = [json.loads(line) for line in self._file]
        self._count = len(lines)
        self._known = {line["key"]: line["id"] for line in lines}

    def do(self, action: str, key: str, arguments: object) -> str:
        """Do something once for its key, and return the id of what was done."""
        with self._lock:
            if key in self._known:
                return str(self._known[key])
            self._count += 1
            made = f"{action}-{self._count}"
            line = {"id": made, "action": action, "key": key, "arguments": arguments}
            self._file.write(json.dumps(line).encode() + b"\n")
            os.fsync(self._file.fileno())
            self._known[key] = made
            return made


def handler_of(ledger: Ledger, refused: frozenset[str]) -> type[BaseHTTPRequestHandler]:
    """Return what answers requests: `POST /{action}` does it, unless it is one that is refused for good."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
            action, key = self.path.strip("/"), self.headers.get(KEY_HEADER, "")
            if action in refused:
                self._answer(422, {"error": f"{action} is refused: the house is full"})
            elif not key:
                self._answer(400, {"error": f"send {KEY_HEADER}"})
            else:
                self._answer(201, {"id": ledger.do(action, key, body)})

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            text = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
            """Say nothing: the ledger is the log."""

    return Handler


@click.command()
@click.argument("ledger", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--refuse", multiple=True, help="An action that is refused for good.")
def serve(*, ledger: Path, refuse: tuple[str, ...]) -> None:
    """Serve the provider with the file LEDGER on a free port of the loopback, and print its address."""
    handler = handler_of(Ledger(ledger), frozenset(refuse))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        click.echo(f"The provider serves http://127.0.0.1:{server.server_address[1]}")
        sys.stdout.flush()
        server.serve_forever()


if __name__ == "__main__":
    serve()
