"""Faults that are planted between the machine and a sound service: each breaks one promise, as a bug would.

A liar wraps what asks the service. The machine must catch every one of them, else it cannot see.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Final
from uuid import uuid4

import msgspec

from tests.acceptance.machine.clock import Clock
from tests.acceptance.machine.line import Ask, word
from tests.service import Reply

Liar = Callable[[Ask, Clock], Ask]
_BEGIN: Final = "/v1/effects"
_SETTLE: Final = timedelta(seconds=11)


def _told(reply: Reply, status: int, **members: object) -> Reply:
    """Return the answer with another status and other members."""
    return msgspec.structs.replace(reply, status=status, body=reply.body | members)


def grants_a_second_lease(ask: Ask, clock: Clock) -> Ask:
    """While one attempt holds the lease, another is told to execute."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        if path != _BEGIN or word(reply) != "in-progress" or not isinstance(body, dict):
            return reply
        grant = {"decision": "execute", "attempt": body["attempt"], "arguments": None}
        grant |= {"downstream_key": "0" * 64, "lease_seconds": float(body.get("lease_seconds", 25))}
        return _told(reply, 201, fence=reply.body["fence"] + 1, **grant)

    return lie


def executes_again_in_doubt(ask: Ask, clock: Clock) -> Ask:
    """Doubt is taken for not applied, and the effect is executed once more."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        if path != _BEGIN or word(reply) != "outcome-in-doubt":
            return reply
        clock.move([reply.body["key"]], timedelta(seconds=100))
        word_of_nobody = {"as": "not_applied", "fence": reply.body["fence"], "reason": "surely not"}
        ask("POST", reply.body["resolve"], word_of_nobody)
        return ask(method, path, body)

    return lie


def knows_no_settle_time(ask: Ask, clock: Clock) -> Ask:
    """Word that nothing was applied is believed at once."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        if not path.endswith("/resolve") or word(reply) != "not-possible" or "retry-after" not in reply.headers:
            return reply
        clock.move([reply.body["key"]], _SETTLE)
        believed = ask(method, path, body)
        if word(believed) != "ok":  # it was refused for more than its haste: the lie leaves no trace
            clock.move([reply.body["key"]], -_SETTLE)
        return believed

    return lie


def forgets_how_old_word_is(ask: Ask, clock: Clock) -> Ask:
    """The moment as of which word holds is dropped."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        if path.endswith("/resolve") and isinstance(body, dict):
            body = {name: value for name, value in body.items() if name != "as_of"}
        return ask(method, path, body)

    return lie


def replays_another_result(ask: Ask, clock: Clock) -> Ask:
    """A replay answers with a result of its own."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        return _told(reply, 200, outcome={"result": {"id": 9}}) if word(reply) == "replay" else reply

    return lie


def loses_commits(ask: Ask, clock: Clock) -> Ask:
    """The commit of whoever holds the lease is acknowledged and not written."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        if not path.endswith("/commit") or not isinstance(body, dict):
            return ask(method, path, body)
        holder = {"attempt": body["attempt"], "fence": body["fence"], "lease_seconds": 1}
        held = ask("POST", path.replace("/commit", "/renew"), holder)
        if held.status != 200:
            return ask(method, path, body)
        return _told(held, 200, state="succeeded", outcome={"result": body["result"]})

    return lie


def believes_any_fence(ask: Ask, clock: Clock) -> Ask:
    """A report under a stale fence is written under the present one."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        if word(reply) != "lease-lost" or not isinstance(body, dict) or "fence" not in body:
            return reply
        return ask(method, path, body | {"fence": reply.body["fence"]})

    return lie


def changes_the_downstream_key(ask: Ask, clock: Clock) -> Ask:
    """Every grant gets a downstream key of its own."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        return _told(reply, 201, downstream_key=uuid4().hex * 2) if word(reply) == "execute" else reply

    return lie


def keeps_the_downstream_key(ask: Ask, clock: Clock) -> Ask:
    """A downstream key is never changed, so that a saved refusal is replayed for ever."""
    first: dict[str, str] = {}

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        if word(reply) != "execute":
            return reply
        return _told(reply, 201, downstream_key=first.setdefault(reply.body["key"], reply.body["downstream_key"]))

    return lie


def hides_other_arguments(ask: Ask, clock: Clock) -> Ask:
    """A call with other arguments is answered as if it were the recorded one."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        if word(reply) != "arguments-changed" or not isinstance(body, dict):
            return reply
        recorded = ask("GET", f"{_BEGIN}/{reply.body['key']}", None).body["arguments"]
        return ask(method, path, body | {"arguments": recorded})

    return lie


def hides_drift(ask: Ask, clock: Clock) -> Ask:
    """A replay of a rephrased call is not marked."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        return _told(reply, 200, drift=None) if word(reply) == "replay" else reply

    return lie


def counts_no_attempts(ask: Ask, clock: Clock) -> Ask:
    """What was tried as often as it may be is tried again."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        if word(reply) != "attempts-exhausted" or not isinstance(body, dict):
            return reply
        return ask(method, path, body | {"reopen": True})

    return lie


def loses_cancellations(ask: Ask, clock: Clock) -> Ask:
    """A cancellation of what waits is acknowledged and not written."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        if not path.endswith("/cancel"):
            return ask(method, path, body)
        held = ask("GET", path.removesuffix("/cancel"), None)
        is_possible = held.body["state"] == "pending" and held.body["settles_at"] is None
        return _told(held, 200, state="failed") if is_possible else ask(method, path, body)

    return lie


def forgets_what_is_known(ask: Ask, clock: Clock) -> Ask:
    """Nobody is believed who says that it knows how an effect ended."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        if isinstance(body, dict):
            body = {name: value for name, value in body.items() if name != "delivered"}
        return ask(method, path, body)

    return lie


def takes_other_words_for_another_intent(ask: Ask, clock: Clock) -> Ask:
    """A rephrased call is executed while the first is in doubt."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        if word(reply) != "sibling-in-doubt" or not isinstance(body, dict):
            return reply
        return ask(method, path, body | {"distinct": True})

    return lie


def swallows_heartbeats(ask: Ask, clock: Clock) -> Ask:
    """A renewal is acknowledged and the deadline hardly moves."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        if path.endswith("/renew") and isinstance(body, dict):
            body = body | {"lease_seconds": 1}
        return ask(method, path, body)

    return lie


def leaves_members_out(ask: Ask, clock: Clock) -> Ask:
    """An answer does not say which generation it is about."""

    def lie(method: str, path: str, body: object = None) -> Reply:
        reply = ask(method, path, body)
        kept = {name: value for name, value in reply.body.items() if name != "generation"}
        return msgspec.structs.replace(reply, body=kept) if path == _BEGIN else reply

    return lie
