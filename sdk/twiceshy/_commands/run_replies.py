"""Mail that answers a run's, joined to the timeline of its log: it came in beside the log, and has no number in it."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from twiceshy._commands.pages import Listing, Page, gather
from twiceshy._commands.parameters import in_path
from twiceshy._commands.service import Service
from twiceshy._commands.tables import moment, print_line, print_table
from twiceshy._timeline import Card, MailCard, mail_card
from twiceshy_contract.replies import ReplyView

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def replies_of(service: Service, run: str, effects: int) -> Listing[ReplyView]:
    """Read the replies to a run. One without effects has sent nothing."""
    if not effects:
        return Listing([], [], None)
    path = f"/v1/runs/{in_path(run)}/replies"
    return gather(service, path, {}, Page[ReplyView], limit=None, total=None)


def print_replies(replies: Sequence[ReplyView]) -> None:
    """Print replies to a run that was not recorded."""
    if replies:
        print_line("")
        print_table(
            ("reply at", "from", "subject", "thread"),
            ((moment(reply.received_at), reply.from_, reply.subject, reply.thread) for reply in replies),
        )


def joined(cards: Iterable[Card], replies: Sequence[ReplyView], *, whole: bool) -> Iterator[Card | MailCard]:
    """Put each reply behind the calls that were made before it came in. Cards of a part have the replies within it."""
    waiting = [mail_card(reply, _micros(reply)) for reply in replies]
    is_first = True
    for card in cards:
        while waiting and waiting[0].at < card.at:
            mail = waiting.pop(0)
            if whole or not is_first:
                yield mail
        is_first = False
        yield card
    if whole:
        yield from waiting


def _micros(reply: ReplyView) -> int:
    return (datetime.fromisoformat(reply.received_at) - _EPOCH) // timedelta(microseconds=1)
