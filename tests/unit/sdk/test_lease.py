"""The lease by the client's clock, and the thread that renews it."""

import threading
from uuid import UUID

from tests.unit.sdk.scripted import DOWNSTREAM, KEY, ScriptedService, about, answered, problem
from twiceshy._answers import Execute
from twiceshy._effect import CurrentEffect
from twiceshy._heartbeat import Heartbeat
from twiceshy._lease import Lease, clock
from twiceshy._transports.base import NoReply, Reply, Request


def effect_with(lease: Lease, seconds: float = 30.0) -> CurrentEffect:
    answer = Execute(
        key=KEY,
        tool="pay",
        run=None,
        fence=1,
        attempt=UUID(int=1),
        arguments=None,
        downstream_key=DOWNSTREAM,
        lease_seconds_left=seconds,
    )
    return CurrentEffect(answer, lease, clock)


def test_a_lease_is_counted_from_before_its_request() -> None:
    lease = Lease.granted(100.0, 30.0)
    assert (lease.deadline, lease.renew_at) == (130.0, 110.0)
    assert lease.seconds_left(125.0) == 5.0
    assert lease.seconds_left(131.0) == 0.0
    assert not lease.has_ended(129.9)
    assert lease.has_ended(130.0)


def test_a_renewal_never_moves_the_deadline_back() -> None:
    lease = Lease.granted(100.0, 30.0)
    assert lease.renewed(110.0, 30.0).deadline == 140.0
    assert lease.renewed(110.0, 5.0).deadline == 130.0


def test_the_heartbeat_renews_by_itself_and_ends_when_closed() -> None:
    service = ScriptedService()
    service.renewal = answered(200, about(lease_seconds_left=30.0))
    heart = Heartbeat(service, clock)
    effect = effect_with(Lease.granted(clock() - 29.0, 30.0))
    heart.watch(effect)
    assert service.renewed.wait(5)
    body = service.bodies("/renew")[0]
    assert body == {"attempt": str(UUID(int=1)), "fence": 1}
    thread = heart._thread
    assert thread is not None
    heart.close()
    thread.join(5)
    assert not thread.is_alive()


def test_a_lease_that_is_refused_is_lost_at_once() -> None:
    service = ScriptedService()
    service.renewal = problem("lease-lost")
    heart = Heartbeat(service, clock)
    effect = effect_with(Lease.granted(clock() - 11.0, 30.0))
    told = threading.Event()
    with effect.entered(told.set):
        heart.watch(effect)
        assert told.wait(5)
    assert effect.lease_lost
    heart.close()


def test_a_heartbeat_survives_a_transport_that_raises() -> None:
    raised, renewed = threading.Event(), threading.Event()

    def fragile(_: Request) -> Reply | NoReply:
        if not raised.is_set():
            raised.set()
            raise RuntimeError("a defect")
        renewed.set()
        return answered(200, about(lease_seconds_left=30.0))

    service = ScriptedService()
    service.renewal = fragile
    heart = Heartbeat(service, clock)
    heart.watch(effect_with(Lease.granted(clock() - 1.0, 1.5)))
    assert renewed.wait(5)
    heart.close()
