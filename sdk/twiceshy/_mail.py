"""Mail that answers a run's: read from the service, and recorded as what a person said, so that a replay reads it too.

The service keeps a reply beside the run's log, whenever it comes in; what the code has read of it is in the log.
"""

from abc import ABC
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import quote, urlencode
from uuid import UUID

import msgspec

from twiceshy._ask import Answered, ask
from twiceshy._children import Parent
from twiceshy._drive import drive, drive_async
from twiceshy._environment import Environment
from twiceshy._replies import Unanswered
from twiceshy._steps import Flow, Raised, Returned
from twiceshy._transports.base import Request
from twiceshy.exceptions import EffectRef, GuardUnavailable, RequestRefused
from twiceshy_contract.problems import Problem
from twiceshy_contract.replies import AttachmentView, ReplyPage, ReplyView

_PAGE: Final = msgspec.json.Decoder(ReplyPage)
_NAME: Final = "replies"
_AT_ONCE: Final = 500
_ALL: Final[Mapping[str, object]] = MappingProxyType({"limit": _AT_ONCE})


class MailReply(msgspec.Struct, frozen=True, kw_only=True):
    """A mail that answers one of a run's, by the name of its `thread` where it has one.

    `message` is what it answers. Its words are a stranger's, and `sender` is who it says that it is from: nothing of
    it is proved. `automatic`: a machine says that it wrote it, such as a notice of absence. `cut`: a text was longer
    than the service keeps. What was attached is named, and not kept.
    """

    id: UUID
    message: UUID | None
    thread: str | None
    received_at: datetime
    message_id: str
    sender: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    text: str | None
    html: str | None
    automatic: bool
    cut: bool
    attachments: tuple[AttachmentView, ...]


class Correspondent(Parent, ABC):
    """A run whose mail is answered."""

    _environment: Environment

    def replies(self, thread: str | None = None) -> list[MailReply]:
        """Return the mail that answered this run's so far, in the order in which it came in; of one thread, or all."""

        def read(question: str) -> list[MailReply]:
            del question
            found: list[MailReply] = drive(self._reading(thread), self._environment.transport)
            return found

        found: list[MailReply] = self._called("human", _NAME, read, (_question(thread),), {})
        return found

    async def replies_async(self, thread: str | None = None) -> list[MailReply]:
        """Return the mail that answered this run's so far, in the order in which it came in; of one thread, or all."""

        async def read(question: str) -> list[MailReply]:
            del question
            found: list[MailReply] = await drive_async(self._reading(thread), self._environment.transport)
            return found

        found: list[MailReply] = await self._called("human", _NAME, read, (_question(thread),), {})
        return found

    def _reading(self, thread: str | None) -> Flow[Returned | Raised]:
        """Read all pages. A run that the service does not know yet has sent nothing."""
        found: list[MailReply] = []
        query = dict(_ALL) if thread is None else {**_ALL, "thread": thread}
        while True:
            page = yield from self._page(query)
            if page is None:
                return Returned(found)
            found += [_reply_of(view) for view in page.items]
            if page.next is None:
                return Returned(found)
            query["after"] = page.next

    def _page(self, query: Mapping[str, object]) -> Flow[ReplyPage | None]:
        environment, reference = self._environment, EffectRef(tool=_NAME, run=self.name)
        path = f"/v1/runs/{quote(self.name, safe='')}/replies?{urlencode(query)}"
        request = Request(method="GET", path=path, token=environment.credential_of(self.name))
        until = environment.clock() + environment.limits.unavailable_seconds
        answer = yield from ask(environment, request, _PAGE, until=until)
        match answer:
            case Answered(value=page):
                return page
            case Unanswered(reason):
                raise GuardUnavailable(
                    f"The replies to the run {self.name} are not read: the guard's service at {environment.url} gives "
                    f"no answer ({reason}). Read them again later.",
                    effect=reference,
                )
            case Problem() if answer.code == "not-found":
                return None
            case Problem():
                raise RequestRefused(
                    f"The replies to the run {self.name} are not read: {answer.detail}",
                    effect=reference,
                    code=answer.code,
                )


def _question(thread: str | None) -> str:
    return f"Which replies came in so far{'' if thread is None else f' in {thread}'}?"


def _reply_of(view: ReplyView) -> MailReply:
    told: dict[str, Any] = {name: getattr(view, name) for name in MailReply.__struct_fields__ if hasattr(view, name)}
    return MailReply(**told | {"sender": view.from_, "received_at": datetime.fromisoformat(view.received_at)})
