"""Doubt that holds a saga up: the probe of the doubtful tool is asked in line, where this process has one."""

import threading
from collections.abc import Callable, Iterator

import pytest

from tests.integration.saga_tools import notes, state
from tests.service import ServiceProcess
from twiceshy import Applied, Compensation, Guard, NotFound, RunSuspended, Unproven

Finding = Applied | NotFound | Unproven
Look = Callable[[], Finding]


class Payment:
    """A payment and its refund, each of which may break off after it was sent, and what their probes say."""

    def __init__(self, url: str, run: str) -> None:
        self.guard = Guard(url, spool=None)
        self.did: list[str] = []
        self.breaks: set[str] = set()
        self.asked: list[str] = []
        self.says: dict[str, Look] = {}
        self.run = run
        refund = Compensation(tool=f"refund-{run}", arguments={"cents": "${arguments.cents}"})
        self.pay = self.guard.tool(
            name=f"pay-{run}", compensation=refund, settle_seconds=0, backoff_seconds=0, deadline_seconds=0
        )(self._pay)
        self.refund = self.guard.tool(name=f"refund-{run}", settle_seconds=0, backoff_seconds=0)(self._refund)

    def _pay(self, cents: int) -> None:
        self._do("pay")

    def _refund(self, cents: int) -> None:
        self._do("refund")

    def _do(self, tool: str) -> None:
        self.did.append(tool)
        if tool in self.breaks:
            self.breaks.remove(tool)
            raise TimeoutError

    def look_at(self, tool: str) -> None:
        """Put a probe beside a tool."""

        def look(effect: object, cents: int) -> Finding:
            self.asked.append(tool)
            return self.says[tool]()

        {"pay": self.pay, "refund": self.refund}[tool].probe(look)

    def fail(self, wait_seconds: float = 0) -> str:
        """Pay within a saga that then fails, and return what the error says of the saga."""
        try:
            self._book(wait_seconds)
        except KeyError as error:
            return notes(error)
        raise AssertionError("the saga did not fail")

    def _book(self, wait_seconds: float) -> None:
        with self.guard.saga(self.run, wait_seconds=wait_seconds):
            self.pay(5)
            raise KeyError("full")


@pytest.fixture
def payment(service: ServiceProcess, run: str) -> Iterator[Payment]:
    payment = Payment(service.url, run)
    yield payment
    payment.guard.close()


def test_a_compensation_in_doubt_that_its_probe_finds_applied_is_not_made_again(
    payment: Payment, service: ServiceProcess, run: str
) -> None:
    payment.breaks = {"refund"}
    assert "may or may not have happened" in payment.fail()
    payment.look_at("refund")
    payment.says["refund"] = lambda: Applied(None)
    (report,) = [found for found in payment.guard.recover_sagas() if found.saga == run]
    assert (report.state, report.taken_back, report.left) == ("compensated", (f"refund-{run}",), "")
    assert (payment.did, payment.asked) == (["pay", "refund"], ["refund"])
    assert state(service, run) == "compensated"


def test_a_compensation_in_doubt_that_its_probe_does_not_find_is_made_again(
    payment: Payment, service: ServiceProcess, run: str
) -> None:
    payment.breaks = {"refund"}
    payment.fail()
    payment.look_at("refund")
    payment.says["refund"] = NotFound
    assert [report.left for report in payment.guard.recover_sagas() if report.saga == run] == [""]
    assert (payment.did, payment.asked) == (["pay", "refund", "refund"], ["refund"])
    assert state(service, run) == "compensated"


@pytest.mark.parametrize(("says", "did"), [(Applied(None), ["pay", "refund"]), (NotFound(), ["pay"])])
def test_a_step_in_doubt_is_asked_about_before_it_is_known_what_to_take_back(
    payment: Payment, service: ServiceProcess, run: str, says: Finding, did: list[str]
) -> None:
    payment.breaks = {"pay"}
    payment.look_at("pay")
    payment.says["pay"] = Unproven
    with pytest.raises(RunSuspended), payment.guard.saga(run):
        payment.pay(5)
    service.ask("POST", f"/v1/sagas/{run}/fail", {"reason": "a person has seen it"})
    payment.says["pay"] = lambda: says
    assert [report.left for report in payment.guard.recover_sagas() if report.saga == run] == [""]
    assert payment.did == did
    assert state(service, run) == "compensated"


def test_what_a_probe_cannot_find_out_is_asked_once_and_said(payment: Payment, run: str) -> None:
    payment.breaks = {"refund"}
    payment.fail()
    payment.look_at("refund")
    payment.says["refund"] = lambda: Unproven("the bank is closed")
    (report,) = [found for found in payment.guard.recover_sagas(wait_seconds=0.5) if found.saga == run]
    assert report.left.startswith("its compensation may or may not have happened")
    assert report.left.endswith("its probe was asked: the bank is closed")
    assert payment.asked == ["refund"]


async def test_an_async_probe_is_asked_on_an_event_loop_alone(service: ServiceProcess, run: str) -> None:
    guard, sent = Guard(service.url, spool=None), threading.Event()
    refund = Compensation(tool=f"refund-{run}", arguments={"cents": "${arguments.cents}"})

    @guard.tool(name=f"pay-{run}", compensation=refund, settle_seconds=0)
    async def pay(cents: int) -> None:
        sent.set()

    @guard.tool(name=f"refund-{run}", settle_seconds=0)
    async def take_back(cents: int) -> None:
        raise TimeoutError

    async def book() -> None:
        async with guard.saga(run, wait_seconds=0):
            await pay(5)
            raise KeyError("full")

    with pytest.raises(KeyError):
        await book()

    @take_back.probe
    async def look(effect: object) -> Finding:
        return Applied(None)

    (report,) = [found for found in guard.recover_sagas() if found.saga == run]
    assert report.left.endswith("its probe is an `async def` function, which only an event loop can ask")
    (report,) = [found for found in await guard.recover_sagas_async() if found.saga == run]
    assert (report.state, sent.is_set()) == ("compensated", True)
    await guard.close_async()
