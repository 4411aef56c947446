"""What is staged with an effect: messages frozen to rows, by what their destinations are at this moment.

Nothing is read where nothing is staged. Of mail, its destination may have a sender for the run's agent, and its thread
may have been answered: both are looked up only where they change what is written.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

import msgspec

from guard.core.effects import AttemptToken, Instant, Key, TenantId
from guard.core.mail import recipients, thread_root
from guard.core.outbox import Place, Sender, Staged, Staging, check_fit, rendered
from guard.ports.outbox import DestinationStore
from guard.service.amend import look
from guard.service.bell import Bell
from guard.service.intake import Intake
from guard.service.loading import Loader
from guard.service.measures import Measures
from guard.service.runs import Runs
from twiceshy_contract.canonical import canonical
from twiceshy_contract.destinations import SmtpDestination
from twiceshy_contract.messages import MAX_MESSAGES, Mail, Message
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.variables import did_you_mean

_LARGE: Final = 64 * 2**10
"""From so many characters of mail on, its copies are written in a thread: the loop has others to serve."""
_NEVER: Final = Instant(0)

Newest = Callable[[TenantId, str], Awaitable[str | None]]
"""Finds the Message-ID of the newest mail that came in to a thread, by the id of its root."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """Who stages: an effect, and its run by name where it is known without asking."""

    tenant: TenantId
    key: Key
    run: str | None = None
    is_known: bool = False


class Stagings:
    """Renders messages."""

    def __init__(
        self,
        destinations: DestinationStore,
        newest: Newest,
        runs: Runs,
        intake: Intake,
        bell: Bell,
        measures: Measures,
    ) -> None:
        self._destinations: Final = destinations
        self._newest: Final = newest
        self._runs: Final = runs
        self._intake: Final = intake
        self._bell: Final = bell
        self._measures: Final = measures
        self._loader: Loader[str, Place] = Loader(destinations.named)

    async def places(self, tenant: TenantId, names: Sequence[str]) -> dict[str, Place]:
        """Return those of these destinations that are there. Raises StoreUnavailable."""
        wanted = list(dict.fromkeys(names))
        found = await asyncio.gather(*(self._loader.get(tenant, name) for name in wanted))
        return {name: place for name, place in zip(wanted, found, strict=True) if place is not None}

    async def check(self, tenant: TenantId, messages: Sequence[Message], field: str) -> None:
        """Refuse what cannot go where it is meant to, and name what is near.

        Raises Refusal with its place under the field of the request, StoreUnavailable.
        """
        places = await self.places(tenant, [message.destination for message in messages])
        for number, message in enumerate(messages):
            place = places.get(message.destination)
            if place is None or place.state == "removed":
                known = [record.place.name for record in await self._destinations.all(tenant)]
                near = did_you_mean(message.destination, known).rstrip(".?")
                reason = f"no destination is named {message.destination!r}: declare it first{near}"
                raise Refusal(reason, (field, number, "destination"))
        try:
            check_fit(messages, places)
        except Refusal as misfit:
            raise Refusal(misfit.reason, (field, *misfit.steps[1:])) from misfit

    def tell(self, staged: int) -> None:
        """Count what was staged, and let relays hear of it."""
        self._measures.staged(staged)
        self._bell.ring()

    def ring(self) -> None:
        """Let relays hear that something is to be sent again."""
        self._bell.ring()

    async def with_report(
        self, source: Source, messages: Sequence[Message], token: AttemptToken | None = None
    ) -> Staging:
        """Render what comes with a report: what cannot be is kept for a person, so that no outcome is lost for it.

        Raises StoreUnavailable.
        """
        return Staging(tenant=source.tenant, rows=await self.rows(source, messages, strict=False), token=token)

    async def rows(self, source: Source, messages: Sequence[Message], *, strict: bool) -> tuple[Staged, ...]:
        """Freeze messages to rows. Raises Refusal where they are refused (`strict`), StoreUnavailable."""
        places = await self.places(source.tenant, [message.destination for message in messages])
        sender = await self.sender(source, messages, places)
        if _length(messages) < _LARGE:
            return rendered(messages, source.key, places, sender, strict=strict)
        return await asyncio.to_thread(rendered, messages, source.key, places, sender, strict=strict)

    async def sender(self, source: Source, messages: Sequence[Message], places: Mapping[str, Place]) -> Sender:
        """Return who sends mail, and when by the database's clock; of nothing else it is asked."""
        mails = [(message.mail, places.get(message.destination)) for message in messages]
        to_smtp = [(mail, place) for mail, place in mails if isinstance(mail, Mail) and _senders(place) is not None]
        if not to_smtp:
            return Sender(tenant=source.tenant, at=_NEVER)
        seen = await self._intake.do(source.key, look(source.key), source.tenant)
        run = source.run
        if not source.is_known and seen.effect is not None:
            run = seen.effect.intent.run
        has_agents = any(mail.sender is None and _senders(place) for mail, place in to_smtp)
        agent = await self._agent(source.tenant, run) if has_agents else None
        roots = {
            thread_root(source.tenant, place.name, mail.thread)
            for mail, place in to_smtp
            if place is not None and mail.thread is not None
        }
        found = {root: await self._newest(source.tenant, root) for root in sorted(roots)}
        answers = {root: newest for root, newest in found.items() if newest is not None}
        return Sender(tenant=source.tenant, agent=agent, answers=answers, at=seen.at)

    async def _agent(self, tenant: TenantId, name: str | None) -> str | None:
        run = None if name is None else await self._runs.get(tenant, name)
        return None if run is None or run.about is None else run.about.agent


def check_messages(messages: Sequence[Message], field: str) -> None:
    """Refuse what no destination could take, before anything is asked. Raises Refusal with its place under a field."""
    rows = 0
    for number, message in enumerate(messages):
        rows += len(recipients(message.mail)) if isinstance(message.mail, Mail) else 1
        if message.payload is not msgspec.UNSET:
            _check_payload(message.payload, field, number)
    if rows > MAX_MESSAGES:
        raise Refusal(f"one effect stages {MAX_MESSAGES} messages at the most, copies of mail among them", (field,))


def _check_payload(payload: object, field: str, number: int) -> None:
    try:
        canonical(payload)
    except Refusal as refusal:
        raise refusal.under(field, number, "payload") from refusal


def _senders(place: Place | None) -> Mapping[str, str] | None:
    """Return who mail of a destination may be from by the name of the agent; None where it takes no mail."""
    settings = None if place is None else place.settings
    return settings.senders if isinstance(settings, SmtpDestination) else None


def _length(messages: Sequence[Message]) -> int:
    """Say how much mail there is to write."""
    mails = [message.mail for message in messages if isinstance(message.mail, Mail)]
    return sum(len(mail.text or "") + len(mail.html or "") for mail in mails)
