"""Mail for the tests: staged under a run, and replies that are signed as a provider signs them."""

import base64
import time
from email.message import EmailMessage
from typing import Any, Final
from uuid import uuid4

from guard.core.mail import mail_id, thread_root
from guard.web.requests import DEFAULT_TENANT
from outbox_relay.signatures import signatures
from tests.service import Reply, ServiceProcess
from twiceshy_contract.replies import INBOUND_PATH

OLD, NEW = (bytes([number]) * 32 for number in (1, 2))
INBOUND_SECRETS: Final = ",".join(f"whsec_{base64.b64encode(secret).decode()}" for secret in (OLD, NEW))
DOMAIN: Final = "acme.example"


class Desk:
    """A destination of mail, and what is sent to it."""

    def __init__(self, service: ServiceProcess) -> None:
        self.service = service
        self.name = f"mail-{uuid4().hex[:12]}"
        settings = {
            "kind": "smtp", "host": "mail.invalid", "sender": f"Acme <desk@{DOMAIN}>",
            "senders": {"booker": f"Booker <booker@{DOMAIN}>"},
        }  # fmt: skip
        declared = service.ask("PUT", f"/v1/destinations/{self.name}", settings)
        assert declared.status == 200, declared.body
        service.ask("POST", f"/v1/destinations/{self.name}/pause", {"reason": "nothing is there"})

    def stage(self, run: str, /, *, to: tuple[str, ...] = ("ann@x.example",), **mail: object) -> Reply:
        """Ask to stage a mail under a run."""
        message = {"destination": self.name, "mail": {"to": list(to), "subject": "Room", "text": "Booked?"} | mail}
        call = {"tool": "send_mail", "arguments": {"n": uuid4().hex}, "run": run, "attempt": str(uuid4())}
        return self.service.ask("POST", "/v1/outbox", call | {"messages": [message]})

    def send(self, run: str, /, **mail: Any) -> str:
        """Stage a mail under a run; return the id of its message."""
        staged = self.stage(run, **mail)
        assert staged.status in (200, 201), staged.body
        return str(staged.body["messages"][0])

    def root(self, thread: str) -> str:
        """Return the id of a thread's root."""
        return f"<{thread_root(DEFAULT_TENANT, self.name, thread)}@{DOMAIN}>"

    def body_of(self, message: str) -> str:
        """Return the bytes of a mail, as a text."""
        return str(self.service.ask("GET", f"/v1/outbox/{message}").body["body"])


def id_of(message: str, epoch: int = 1) -> str:
    """Return the Message-ID of a message."""
    return f"<{mail_id(f'{message}.{epoch}')}@{DOMAIN}>"


def reply_to(*ids: str, message_id: str | None = None, **headers: str) -> bytes:
    """Write a reply that names these ids, the nearest last."""
    mail = EmailMessage()
    mail["Message-ID"] = message_id or f"<{uuid4().hex}@x.example>"
    mail["From"], mail["To"], mail["Subject"] = "Ann <ann@x.example>", f"desk@{DOMAIN}", "Re: Room"
    if ids:
        mail["In-Reply-To"], mail["References"] = ids[-1], " ".join(ids)
    for name, value in headers.items():
        mail[name.replace("_", "-")] = value
    mail.set_content("Yes, please.")
    return mail.as_bytes()


def post(
    service: ServiceProcess,
    body: bytes,
    content_type: str = "message/rfc822",
    *,
    secret: bytes | None = NEW,
    late: int = 0,
    **headers: str,
) -> Reply:
    """Post what came in, signed `late` seconds ago; without a secret it is not signed."""
    signed: dict[str, str] = {}
    if secret is not None:
        at = str(int(time.time()) - late)
        signature = signatures([secret], "msg_1", at, body)
        signed = {"webhook-id": "msg_1", "webhook-timestamp": at, "webhook-signature": signature}
    return service.raw("POST", INBOUND_PATH, body, {"Content-Type": content_type, **signed, **headers})
