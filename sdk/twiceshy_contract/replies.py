"""Wire structs of mail that comes in: how it is posted, and how it is told.

A reply is no event of a run's log, in which the service takes no number: it is kept beside it, and joined when the
run is shown.
"""

from typing import Annotated, Final, Literal
from uuid import UUID

import msgspec

from twiceshy_contract.messages import Lane
from twiceshy_contract.names import NO_CONTROL, RunName

MAX_INBOUND_BYTES: Final = 16 * 2**20
"""How large a mail may be that comes in, attachments and all."""
INBOUND_PATH: Final = "/v1/inbound/email"
"""Where mail comes in: its credential is the signature of Standard Webhooks, and no token."""

_Id = Annotated[str, msgspec.Meta(min_length=1, max_length=998, pattern=NO_CONTROL)]
_Header = Annotated[str, msgspec.Meta(max_length=20_000)]
_Addresses = _Header | Annotated[tuple[_Header, ...], msgspec.Meta(max_length=1000)]


class InboundMail(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Mail as JSON, for whoever has taken it apart already. Other members are passed over.

    `to`, `cc` and `references` are lists, or one text as in the header of that name. Ids may lack their <>.
    """

    message_id: _Id
    from_: _Header
    to: _Addresses = ()
    cc: _Addresses = ()
    subject: _Header = ""
    date: _Header | None = None
    text: str | None = None
    html: str | None = None
    in_reply_to: _Header | None = None
    references: _Addresses = ()


class InboundAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of mail that came in: `unmatched` answers nothing that was sent from here, and is kept all the same.

    `known`: a mail of this Message-ID is kept already, and this is it.
    """

    id: UUID
    state: Literal["matched", "unmatched"]
    known: bool
    run: str | None
    thread: str | None
    message: UUID | None


class AttachmentView(msgspec.Struct, frozen=True, kw_only=True):
    """What was attached to a mail. The contents are not kept."""

    name: str | None
    content_type: str
    size: int


class ReplyView(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """A mail that came in: `run` and `message` are those that it answers, where it was matched.

    Whoever can write mail can write this: what it says is a stranger's word, and who it is `from` is not proved.
    `automatic`: a machine says that it wrote it, such as a notice of absence. `cut`: a text was longer than is kept.
    """

    id: UUID
    run: str | None
    thread: str | None
    message: UUID | None
    received_at: str
    message_id: str
    from_: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    date: str | None
    text: str | None
    html: str | None
    automatic: bool
    cut: bool
    attachments: tuple[AttachmentView, ...]


class ReplyPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of replies; `next` is the `after` of the next page."""

    items: tuple[ReplyView, ...]
    next: str | None


class ReplyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of all mail that came in: of one run or thread, or what was `matched` or not."""

    run: RunName | None = None
    thread: Lane | None = None
    matched: bool | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None


class RunReplyQuery(msgspec.Struct, frozen=True, kw_only=True):
    """The query of the replies to a run."""

    thread: Lane | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 50
    after: str | None = None
