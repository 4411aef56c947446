"""Answers that go out whole: in order, with no body where none may be, the connection closed where that is asked."""

import json
import socket

from tests.service import ServiceProcess

BEGIN = "POST /v1/effects HTTP/1.1\r\nHost: here\r\nContent-Type: application/json\r\n"


def begin(run: str, title: str, more: str = "") -> bytes:
    body = json.dumps({"tool": "write", "arguments": {"title": title}, "run": run, "attempt": ATTEMPT}).encode()
    return f"{BEGIN}{more}Content-Length: {len(body)}\r\n\r\n".encode() + body


ATTEMPT = "019346a0-0000-7000-8000-000000000001"


def answers(service: ServiceProcess, sent: bytes, count: int) -> tuple[list[tuple[bytes, bytes]], bool]:
    """Send bytes at once; return so many answers, head and body, and whether the service then closes."""
    found: list[tuple[bytes, bytes]] = []
    with socket.create_connection(("127.0.0.1", service.port), timeout=20) as connection:
        connection.sendall(sent)
        stream = connection.makefile("rb")
        for _ in range(count):
            head = b"".join(iter(stream.readline, b"\r\n"))
            length = next(int(line.split(b":")[1]) for line in head.lower().splitlines() if b"content-length" in line)
            found.append((head, b"" if sent.startswith(b"HEAD") else stream.read(length)))
        connection.settimeout(0.3)
        try:
            is_closed = connection.recv(1) == b""
        except TimeoutError:
            is_closed = False
    return found, is_closed


def test_requests_that_come_together_are_answered_in_their_order(service: ServiceProcess, run: str) -> None:
    titles = [f"note {number}" for number in range(5)]
    found, is_closed = answers(service, b"".join(begin(run, title) for title in titles), 5)
    granted = [json.loads(body) for _, body in found]
    assert [(answer["decision"], answer["step"]) for answer in granted] == [("execute", step) for step in range(1, 6)]
    assert not is_closed


def test_an_answer_closes_the_connection_where_the_client_asks_for_that(service: ServiceProcess, run: str) -> None:
    ((head, body),), is_closed = answers(service, begin(run, "last", "Connection: close\r\n"), 1)
    assert head.startswith(b"HTTP/1.1 201 ")
    assert b"connection: close" in head
    assert json.loads(body)["decision"] == "execute"
    assert is_closed


def test_an_answer_to_head_has_no_body(service: ServiceProcess) -> None:
    sent = b"HEAD /v1/effects HTTP/1.1\r\nHost: here\r\n\r\n"
    ((head, _),), is_closed = answers(service, sent, 1)
    assert head.startswith(b"HTTP/1.1 405 ")
    assert not is_closed
