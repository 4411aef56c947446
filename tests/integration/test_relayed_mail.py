"""Mail from its staging to the mailbox, by a relay and a real server: once, and under one name on every try."""

from email import message_from_bytes
from email.policy import default

from msgspec.structs import replace

from guard.core.effects import Instant
from guard.core.inbound_mail import mail_of, our_ids
from guard.core.mail import mail_id
from guard.core.outbox import Sender, Staging, message_id, rendered
from guard.ports.outbox import Redrive
from guard.ports.store import Store
from outbox_relay.relay import Relay
from outbox_relay.secrets import secret_reader
from outbox_relay.sinks.smtp import SmtpSink
from tests.contract.given import TENANT, finish, insert, key, opened, written
from tests.integration.inbound import reply_to
from tests.integration.sinks.mail_servers import ScriptedServer, real_server
from tests.integration.sinks.webhook_receivers import LOOPBACK
from twiceshy_contract.destinations import Destination, SmtpDestination
from twiceshy_contract.messages import Mail, Message

ANN, BOB = "ann@x.example", "bob@x.example"
FIRST, SECOND = message_id(key(1), 0), message_id(key(1), 0, 1)


async def staged(store: Store, port: int, *to: str) -> None:
    """Declare a destination, and stage a mail there in the commit of an effect."""
    settings = SmtpDestination(host="localhost", port=port, security="none", sender="Desk <desk@acme.example>")
    record, _ = await store.destinations.declare(TENANT, "mail", settings)
    message = Message(destination="mail", mail=Mail(to=to, subject="Room", text="Booked.", thread="room 5"))
    sender = Sender(tenant=TENANT, at=Instant(1_760_000_000_000_000))
    rows = rendered([message], key(1), {"mail": record.place}, sender, strict=True)
    await written(store, insert(1, await opened(store)))
    await written(store, replace(finish(1), staging=Staging(tenant=TENANT, rows=rows)))


async def relayed(store: Store) -> None:
    """Send all that is due."""

    def open_sink(name: str, settings: Destination) -> SmtpSink:
        assert isinstance(settings, SmtpDestination)
        return SmtpSink(name, settings, secret_reader({}), LOOPBACK)

    relay = Relay(store.relay, open_sink)
    try:
        await relay.run_once()
    finally:
        await relay.close()


async def state_of(store: Store) -> tuple[str, int]:
    found = await store.outbox.get(TENANT, FIRST)
    assert found is not None
    return found[0].state, found[0].epoch


async def test_mail_that_is_staged_arrives_once_for_everybody(store: Store) -> None:
    async with real_server() as (mailbox, port):
        await staged(store, port, ANN, BOB)
        await relayed(store)
        await relayed(store)
        ids = {
            recipient: message_from_bytes(content, policy=default)["Message-ID"]
            for mail, content in zip(mailbox.mails, mailbox.contents, strict=True)
            for recipient in mail.rcpt_tos
        }
        assert len(mailbox.mails) == 2
    assert ids == {
        ANN: f"<{mail_id(f'{FIRST}.1')}@acme.example>",
        BOB: f"<{mail_id(f'{SECOND}.1')}@acme.example>",
    }
    assert await state_of(store) == ("delivered", 1)


async def test_a_reply_to_what_arrived_is_found_at_its_run(store: Store) -> None:
    async with real_server() as (mailbox, port):
        await staged(store, port, ANN)
        await relayed(store)
        arrived = mail_of(mailbox.contents[0])
    reply = mail_of(reply_to(*reversed(arrived.answers), arrived.message_id))
    taken = await store.replies.take(TENANT, reply, our_ids(reply))
    assert (taken.reply.run, taken.reply.message, taken.reply.thread) == ("booking-42", FIRST, "room 5")


async def test_a_mail_that_may_have_arrived_waits_for_a_person_and_keeps_its_name(store: Store) -> None:
    async with ScriptedServer(END=None) as server:
        await staged(store, server.port, ANN)
        await relayed(store)
        await relayed(store)
        assert (await state_of(store), len(server.stored)) == (("unknown", 1), 1)
        server.answers["END"] = "250 kept"
        await store.outbox.redrive(TENANT, FIRST, Redrive(anew=False, note="it is not in the mailbox"))
        await relayed(store)
        assert await state_of(store) == ("delivered", 1)
        assert server.stored[0] == server.stored[1]
        await store.outbox.redrive(TENANT, FIRST, Redrive(anew=True, note="Ann wants it once more"))
        await relayed(store)
        assert await state_of(store) == ("delivered", 2)
    head, _, rest = server.stored[2].partition(b"\r\n")
    assert head == f"Message-ID: <{mail_id(f'{FIRST}.2')}@acme.example>".encode()
    assert rest == server.stored[0].partition(b"\r\n")[2]
    answer = mail_of(reply_to(f"<{mail_id(f'{FIRST}.2')}@acme.example>"))
    assert (await store.replies.take(TENANT, answer, our_ids(answer))).reply.message == FIRST
