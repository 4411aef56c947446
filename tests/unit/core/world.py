"""A small closed world around one effect: clients, an operator, a provider, a network, discrete time.

The network delays and repeats: a client's request that was sent once may arrive at any later time, any number of
times, and an answer may be lost. A client that dies is one that does nothing more. Time moves by whole ticks and has
no end: every instant is kept relative to now, and what is too old to matter is forgotten, so that the world is finite.

The operator may also cancel an effect that waits, or reopen it: what is cancelled was never applied.

Left out, to keep it small: rejections, closing and exhaustion; more than one first begin on its way at a time; an
operator's word that arrives twice, or later than a new lease and the settle time after it was asked.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from uuid import UUID

from guard.core.effects import AttemptToken, Duration, Fence, Instant, Life
from guard.core.lease import Rules, settles_at
from guard.core.lifecycle import TABLE, Decision, Row, decide, touch
from guard.core.situation import Event, EventName
from tests.unit.core.ageing import aged, without_history

SETTLE = 2
"""How long a request to the provider may stay in flight, whatever the service believes."""
NOW = Instant(0)
NAMES = "ABC"
TOKENS = tuple(AttemptToken(UUID(int=number + 1)) for number in range(len(NAMES)))
_REPORTS: dict[str, EventName] = {"unknown": "unknown", "not_applied": "not_applied", "release": "release"}


class Client(NamedTuple):
    """One attempt as its client knows it; instants are ticks from now.

    `phase`: idle, asked (begin sent), holding (lease granted, nothing sent), sent, or what it said last.
    `deadline` is counted from before begin or renew was sent. `until` is the time before which its request to the
    provider lands, if it lands at all; `epoch` stands for the downstream key: 0 is the present one, -1 the one before.
    """

    phase: str = "idle"
    deadline: int = 0
    epoch: int = 0
    until: int = 0
    has_landed: bool = False


class Word(NamedTuple):
    """What the operator learned at the provider, on its way to the service."""

    fence: int
    asked_at: int
    is_applied: bool


class World(NamedTuple):
    """Everything there is. `receipts`: when the provider first saw each downstream key that it still knows.

    `is_hidden`: the record says that the effect failed, and the provider has applied it.
    """

    life: int
    clients: tuple[Client, ...]
    receipts: tuple[tuple[int, int], ...] = ()
    applied: int = 0
    word: Word | None = None
    is_hidden: bool = False


class Setting(NamedTuple):
    """The tool, and which of the rules hold. At the provider of an idempotent one, applying again changes nothing."""

    lease: int
    is_idempotent: bool = False
    clients: int = len(NAMES)
    window: int | None = None
    table: tuple[Row, ...] = TABLE
    settle: int = SETTLE
    do_clients_fence_themselves: bool = True
    does_word_say_when_it_asked: bool = True
    does_operator_wait_to_ask: bool = False

    @property
    def oldest_word(self) -> int:
        """How long the operator's word may be delayed: long enough for a lease to be revived and to settle again."""
        return self.lease + SETTLE


class Model:
    """The successors of a world under a setting. Lives are kept once and named by number."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._rules = Rules(
            effect_class="idempotent" if setting.is_idempotent else "side_effect",
            lease=Duration(setting.lease),
            backoff=Duration(0),
            settle=Duration(setting.settle),
            provider_window=None if setting.window is None else Duration(setting.window),
        )
        self._lives: list[Life | None] = [None]
        self._numbers: dict[Life | None, int] = {None: 0}
        self._decide = cache(self._decide_once)
        self._age = cache(self._age_once)

    def start(self) -> World:
        """Return the world in which nothing has happened."""
        return World(life=0, clients=(Client(),) * self._setting.clients)

    def is_over(self, world: World) -> bool:
        """Say whether the provider cannot apply the effect twice any more, whatever comes."""
        life = self._lives[world.life]
        is_final = life is not None and life.state in ("succeeded", "failed")
        may_send = ("holding",) if is_final else ("idle", "asked", "holding")
        bound = 1 if self._setting.is_idempotent or (life is not None and life.state == "failed") else 2
        return world.applied + sum(c.phase in may_send or c.until > 0 for c in world.clients) < bound

    def steps(self, world: World) -> Iterator[tuple[str, World]]:
        """Return everything that may happen next, each with its name."""
        for who in range(self._setting.clients):
            yield from self._asking(world, who)
            yield from self._working(world, who)
            yield from self._reporting(world, who)
            yield from self._landing(world, who)
        yield from self._operating(world)
        yield "a tick passes", self._later(world)

    def _asking(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        client, name = world.clients[who], NAMES[who]
        if client.phase == "idle":
            if who == 0 or self._is_known(world, who - 1):
                yield f"{name} sends begin", _with(world, who, Client(phase="asked", deadline=self._setting.lease))
            return
        if client.phase == "asked" and client.deadline < self._setting.lease and self._is_known(world, who):
            yield f"{name} sends begin again", _with(world, who, client._replace(deadline=self._setting.lease))
        after, decision = self._service(world, "begin", who)
        if after.life != world.life:
            yield f"{name}'s begin arrives, its answer is lost: {decision.verdict}", after
        if client.phase == "asked" and decision.verdict == "granted" and client.deadline > 0:
            held = client._replace(phase="holding")
            yield f"{name}'s begin arrives and is answered: granted", _with(after, who, held)

    def _working(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        client, name = world.clients[who], NAMES[who]
        if client.phase != "holding":
            return
        if client.deadline > 0 or not self._setting.do_clients_fence_themselves:
            sent = Client(phase="sent", epoch=client.epoch, until=SETTLE)
            key = "the present key" if client.epoch == 0 else "an old key"
            yield f"{name} sends to the provider under {key}", _with(world, who, sent)
        if client.deadline < self._setting.lease:
            after, decision = self._service(world, "renew", who)
            if decision.verdict == "done":
                yield f"{name} renews", _with(after, who, client._replace(deadline=self._setting.lease))

    def _reporting(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        client, name = world.clients[who], NAMES[who]
        if client.phase in ("asked", "holding"):
            yield f"{name} gives up and sends release", _with(world, who, Client(phase="release"))
        if client.phase == "holding":
            yield f"{name} has applied nothing and says so", _with(world, who, Client(phase="not_applied"))
            yield f"{name} does not know and says so", _with(world, who, Client(phase="unknown"))
        if client.phase == "sent":
            yield f"{name} does not know and says so", _with(world, who, client._replace(phase="unknown"))
        reports: tuple[EventName | None, ...] = (_REPORTS.get(client.phase), "success" if client.has_landed else None)
        for event in reports:
            if event is not None:
                after, decision = self._service(world, event, who)
                if after.life != world.life:
                    yield f"{name}'s {event} arrives: {decision.verdict}, {decision.life.state}", after

    def _landing(self, world: World, who: int) -> Iterator[tuple[str, World]]:
        client, name = world.clients[who], NAMES[who]
        if client.until == 0:
            return
        receipts = dict(world.receipts)
        is_known = client.epoch in receipts
        if self._setting.window is not None:
            receipts.setdefault(client.epoch, 0)
        landed = Client(phase=client.phase, has_landed=True)
        applied = 1 if self._setting.is_idempotent else world.applied + (not is_known)
        after = _with(world, who, landed)._replace(
            receipts=tuple(sorted(receipts.items())), applied=applied, is_hidden=self._is_hidden(world.life, applied)
        )
        yield f"{name}'s request lands and {'is known to the provider' if is_known else 'is applied'}", after

    def _operating(self, world: World) -> Iterator[tuple[str, World]]:
        life = self._lives[world.life]
        if life is not None and life.state == "in_doubt":
            word = Word(fence=life.fence, asked_at=0, is_applied=world.applied > 0)
            settles = settles_at(life, self._rules)
            is_early = self._setting.does_operator_wait_to_ask and settles is not None and settles > NOW
            if word != world.word and not is_early:
                yield f"the operator asks the provider; applied: {word.is_applied}", world._replace(word=word)
        if world.word is not None:
            after, decision = self._resolve(world, world.word)
            if after.life != world.life:
                said = "applied" if world.word.is_applied else "not applied"
                yield f"the operator's '{said}' arrives: {decision.verdict}, {decision.life.state}", after

        yield from self._reconsidering(world)

    def _reconsidering(self, world: World) -> Iterator[tuple[str, World]]:
        events: tuple[EventName, ...] = ("cancelled", "reopened")
        for event in events:
            number, decision = self._decide(world.life, event, None, None, None)
            if number != world.life:
                hidden = self._is_hidden(number, world.applied)
                yield (
                    f"the operator's '{event}' arrives: {decision.verdict}",
                    world._replace(life=number, is_hidden=hidden),
                )

    def _is_hidden(self, number: int, applied: int) -> bool:
        life = self._lives[number]
        return life is not None and life.state == "failed" and applied > 0

    def _later(self, world: World) -> World:
        clients = tuple(
            c._replace(deadline=max(c.deadline - 1, 0), until=max(c.until - 1, 0), epoch=0 if c.until == 1 else c.epoch)
            for c in world.clients
        )
        kept = 0 if self._setting.window is None else self._setting.window - 1
        receipts = tuple((epoch, at - 1) for epoch, at in world.receipts if at > -kept)
        word = world.word
        if word is not None:
            word = None if word.asked_at == -self._setting.oldest_word else word._replace(asked_at=word.asked_at - 1)
        return World(self._age(world.life), clients, receipts, world.applied, word, world.is_hidden)

    def _is_known(self, world: World, who: int) -> bool:
        life = self._lives[world.life]
        return life is not None and life.attempt(TOKENS[who]) is not None

    def _service(self, world: World, event: EventName, who: int) -> tuple[World, Decision]:
        number, decision = self._decide(world.life, event, TOKENS[who], None, None)
        if number == world.life and decision.life.epoch == 0:
            return world, decision
        return _under_key(world._replace(life=number), decision.life.epoch), decision

    def _resolve(self, world: World, word: Word) -> tuple[World, Decision]:
        event: EventName = "found_applied" if word.is_applied else "found_not_applied"
        asked_at = word.asked_at if self._setting.does_word_say_when_it_asked else None
        number, decision = self._decide(world.life, event, None, word.fence, asked_at)
        return _under_key(world._replace(life=number, word=None), decision.life.epoch), decision

    def _decide_once(
        self, number: int, name: EventName, token: AttemptToken | None, fence: int | None, asked_at: int | None
    ) -> tuple[int, Decision]:
        event = Event(
            name=name,
            token=token,
            fence=None if fence is None else Fence(fence),
            asked_at=None if asked_at is None else Instant(asked_at),
        )
        decision = decide(self._lives[number], event, self._rules, NOW, self._setting.table)
        is_change = decision.row is not None and decision.row.act != "nothing"
        return (self._number(decision.life) if is_change else number), decision

    def _age_once(self, number: int) -> int:
        life = self._lives[number]
        return 0 if life is None else self._number(touch(self._aged(life), self._rules, NOW, self._setting.table))

    def _aged(self, life: Life) -> Life:
        oldest = -self._setting.oldest_word - SETTLE - 1
        return aged(life, oldest=oldest, window=self._setting.window or 0)

    def _number(self, life: Life | None) -> int:
        life = None if life is None else without_history(life, is_window_open=self._setting.window is not None)
        number = self._numbers.setdefault(life, len(self._lives))
        if number == len(self._lives):
            self._lives.append(life)
        return number


def _with(world: World, who: int, client: Client) -> World:
    return world._replace(clients=(*world.clients[:who], client, *world.clients[who + 1 :]))


def _under_key(world: World, changes: int) -> World:
    """Count downstream keys from the present one, and forget receipts of keys that nobody can send any more."""
    if changes == 0:
        return world
    clients = tuple(
        c._replace(epoch=c.epoch - changes) if c.phase == "holding" or c.until > 0 else c for c in world.clients
    )
    used = {c.epoch for c in clients}
    receipts = tuple((epoch - changes, at) for epoch, at in world.receipts if epoch - changes in used)
    return world._replace(clients=clients, receipts=receipts)
