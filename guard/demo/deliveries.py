"""What agents stage is delivered once, through two kills of the relay: a webhook and a mail of one booking's commit.

The relay is killed the first time when the letterbox has the webhook and nobody has heard so, and has the mail's
recipient and not yet the mail. The webhook goes out again under the same id, which its receiver drops. What became of
the mail, nobody knows, and so it waits for a person, who looks into the letterbox and sends it. The relay is killed
the second time when the letterbox has the mail and nobody has heard so. The person looks again, and leaves it.
"""

import base64
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from guard.demo.holds import GUEST_VARIABLE
from guard.demo.http import JsonService
from guard.demo.letters import Letters, wait_until
from guard.demo.processes import Child, ChildFailed, Children
from guard.demo.stage import START_SECONDS, Agent, Scene, Stage, address_of

KILLS: Final = 2
_GUEST: Final = "guest@letterbox.example"
_START_TIME: Final = "2026-10-19T14:00:00Z"
_TITLES: Final = {"webhook": "The webhook to the office", "mail": "The mail to the guest"}


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """One message: how often it arrived, how much of it the letterbox kept, and how the outbox tells it."""

    kind: str
    title: str
    arrived: int
    kept: int
    told: str


class _Message(msgspec.Struct, frozen=True):
    """A message as the service shows it."""

    id: str
    destination: str
    state: str
    note: str | None = None
    receipt: str | None = None


class _Page(msgspec.Struct, frozen=True):
    items: tuple[_Message, ...]


class _Relay:
    """The service with its relay, as one process that is killed and started again at the same port and file."""

    def __init__(self, children: Children, folder: Path, letters: Letters) -> None:
        self._children = children
        self._command = [sys.executable, "-m", "twiceshy", "serve", "--with-relay"]
        self._command += ["--database", f"sqlite:///{folder / 'deliveries.db'}"]
        secret = f"whsec_{base64.b64encode(secrets.token_bytes(24)).decode()}"
        self._environment = {"TWICESHY_RELAY_ALLOW": "127.0.0.1/32", "TWICESHY_SECRET_OFFICE": secret}
        self._letters = letters
        self._child: Child | None = None
        self.url = ""

    def start(self) -> None:
        """Start it; again, at the port that it had."""
        port = self.url.rpartition(":")[2] or "0"
        self._child = self._children.start(
            "The service with its relay", [*self._command, "--port", port], self._environment
        )
        self.url = address_of(self._child)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        if self._child is not None:
            self._child.kill()

    def declare(self) -> None:
        """Declare both destinations. A try is given up after half a second, so that the demo is soon over."""
        office = {"kind": "webhook", "url": self._letters.hook_url, "secrets": ["env:TWICESHY_SECRET_OFFICE"]}
        guest = {"kind": "smtp", "host": "127.0.0.1", "port": self._letters.mail_port, "security": "none"}
        guest["sender"] = "Bookings <bookings@shop.example>"
        for name, settings in (("office", office), ("guest", guest)):
            self._service.put(f"/v1/destinations/{name}", settings | {"timeout_seconds": 0.5}, dict[str, Any])

    @property
    def _service(self) -> JsonService:
        return JsonService(self.url)

    def redrive(self, message: _Message) -> None:
        """Say as an operator that the letterbox has no such mail, and that it is to be sent."""
        wish = {"as": "retry", "id": message.id, "reason": "the letterbox has no such mail"}
        self._service.post("/v1/outbox/redrive", wish, dict[str, Any])

    def leave(self, message: _Message) -> None:
        """Say as an operator that the letterbox has the mail, and that it is not to be sent again."""
        wish = {"reason": "the letterbox has the mail"}
        self._service.post(f"/v1/outbox/{message.id}/cancel", wish, dict[str, Any])

    def see(self, destination: str, state: str) -> _Message:
        """Wait until the message to a destination is in a state."""
        found: list[_Message] = []

        def is_there() -> bool:
            page = self._service.get(f"/v1/outbox?state={state}&destination={destination}", _Page)
            found[:] = page.items
            return bool(found)

        wait_until(is_there, f"the message to {destination} to be {state}")
        return found[0]


def deliver(children: Children, here: Stage, folder: Path) -> list[Delivery]:
    """Play it, and count in the letterbox's own file. Raises ChildFailed, OSError."""
    with _letterbox(children, folder) as letters:
        relay = _Relay(children, folder, letters)
        relay.start()
        relay.declare()
        _book(here, relay)
        letters.see_arrive("held", 2)
        relay.kill()
        relay.start()
        office = relay.see("office", "delivered")
        guest = relay.see("guest", "unknown")
        if letters.kept("mail"):
            raise ChildFailed("The letterbox has a mail whose recipient it never agreed to.")
        letters.hold_back("mail-receipt")
        relay.redrive(guest)
        letters.see_arrive("held", 3)
        relay.kill()
        relay.start()
        guest = relay.see("guest", "unknown")
        relay.leave(guest)
        told = {
            "webhook": f"delivered: {office.receipt}",
            "mail": f"unknown, twice; {relay.see('guest', 'cancelled').note}",
        }
        return [
            Delivery(kind=kind, title=title, arrived=letters.arrived(kind), kept=letters.kept(kind), told=told[kind])
            for kind, title in _TITLES.items()
        ]


def wrong(delivery: Delivery) -> str | None:
    """Say what is wrong with a delivery, if anything is."""
    if delivery.kept == 1:
        return None
    return (
        f"{delivery.title}: the letterbox kept {delivery.kept} of it instead of one, of {delivery.arrived} that came."
    )


def _book(here: Stage, relay: _Relay) -> None:
    """Let an agent book, and stage both messages in the commit of its booking."""
    scene = Scene(run="with-relay", start_time=_START_TIME, guarded=True)
    agent: Agent = here.agent_of(relay.url, scene, {GUEST_VARIABLE: _GUEST})
    agent.go()
    agent.told()


@contextmanager
def _letterbox(children: Children, folder: Path) -> Iterator[Letters]:
    file = folder / "letterbox.db"
    child = children.start("The letterbox", [sys.executable, "-m", "guard.demo.letterbox", str(file)])
    line = child.line(START_SECONDS)
    url, mail = (word for word in line.split() if "://" in word)
    letters = Letters(url, int(mail.rpartition(":")[2]), file)
    letters.hold_back("webhook-answer")
    letters.hold_back("mail-recipient")
    yield letters
