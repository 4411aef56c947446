"""A provider over real HTTP that answers as it is told, and remembers what it was asked."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

import msgspec


class Question(msgspec.Struct, frozen=True):
    """One request that came."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any


class Reaction(msgspec.Struct, frozen=True):
    """What is sent back: a status with a JSON body, or bytes as they are.

    `hangs` sends nothing until the provider stops; `endless` sends the body again and again.
    """

    status: int = 200
    body: object = None
    headers: dict[str, str] = {}
    hangs: bool = False
    endless: bool = False


class Provider:
    """Answers every request with what `react` says of it."""

    def __init__(self, react: Callable[[Question], Reaction]) -> None:
        self.react = react
        self.questions: list[Question] = []
        self.stopped = threading.Event()
        self._changed = threading.Condition()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def asked(self, question: Question) -> Reaction:
        """Remember a question and answer it."""
        with self._changed:
            self.questions.append(question)
            self._changed.notify_all()
        return self.react(question)

    def wait_for(self, count: int, about: str = "", seconds: float = 30) -> list[Question]:
        """Wait until so many requests came whose path holds a text, and return all of them."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._about(about)) >= count, seconds):
                raise TimeoutError(f"{len(self._about(about))} of {count} requests about {about!r} came")
            return self._about(about)

    def _about(self, text: str) -> list[Question]:
        return [question for question in self.questions if text in question.path]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopped.set()
        self._server.shutdown()
        self._server.server_close()


def _handler_of(provider: Provider) -> type[BaseHTTPRequestHandler]:
    return type("Handler", (_Handler,), {"provider": provider})


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def log_message(self, *said: object) -> None:
        del said

    def _answer(self) -> None:
        text = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        question = Question(self.command, self.path, headers, json.loads(text) if text else None)
        reaction = self.provider.asked(question)
        if reaction.hangs:
            self.provider.stopped.wait()
            return
        try:
            self._send(reaction)
        except OSError:  # whoever asked has gone
            self.close_connection = True

    def _send(self, reaction: Reaction) -> None:
        body = reaction.body if isinstance(reaction.body, bytes) else json.dumps(reaction.body).encode()
        self.send_response(reaction.status)
        for name, value in reaction.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(2**30 if reaction.endless else len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body)
        while reaction.endless and not self.provider.stopped.is_set():
            self.wfile.write(body)
