"""Tools of a trip for one guard: what they do is written down, and the next thing that goes wrong can be said."""

from collections.abc import Callable
from typing import Any

from tests.service import ServiceProcess
from twiceshy import Compensation, Guard

BOOKED = ["hold 12", "pay 9900", "confirm 12"]
BACK = ["refund pay-9900", "release hold-12 because the trip failed"]


def notes(error: BaseException) -> str:
    """All notes of an error."""
    return "\n".join(getattr(error, "__notes__", []))


def state(service: ServiceProcess, saga: str) -> str:
    """How a saga stands."""
    return str(service.ask("GET", f"/v1/sagas/{saga}").body["state"])


class Trip:
    """A guard with a room and a payment, their compensations, and a confirmation."""

    def __init__(self, url: str, *, has_refund: bool = True) -> None:
        self.guard = Guard(url, spool=None)
        self.did: list[str] = []
        self.breaks: dict[str, BaseException] = {}
        self.lasting: dict[str, BaseException] = {}
        release = Compensation(tool="release", arguments={"hold": "${result.id}"})
        refund = Compensation(tool="refund", arguments={"payment": "${result.id}"})
        tool = self.guard.tool

        @tool(compensation=release, backoff_seconds=0, settle_seconds=0)
        def hold(room: str) -> dict[str, str]:
            return self._does("hold", room)

        @tool(name="release", backoff_seconds=0)
        def release_(hold: str, why: str = "the trip failed") -> None:
            self._does("release", f"{hold} because {why}")

        @tool(compensation=refund, backoff_seconds=0, settle_seconds=0)
        def pay(cents: int) -> dict[str, str]:
            return self._does("pay", str(cents))

        def refund_(payment: str) -> None:
            self._does("refund", payment)

        @tool(settle_seconds=0)
        def confirm(room: str) -> dict[str, str]:
            return self._does("confirm", room)

        self.hold, self.pay, self.confirm = hold, pay, confirm
        self.release = release_
        if has_refund:
            self.guard.tool(name="refund", backoff_seconds=0)(refund_)

    def _does(self, tool: str, what: str) -> dict[str, str]:
        self.did.append(f"{tool} {what}")
        error = self.breaks.pop(tool, None) or self.lasting.get(tool)
        if error is not None:
            raise error
        return {"id": f"{tool}-{what}"}

    def book(self, saga: str, **said: Any) -> None:
        """Book the trip."""
        with self.guard.saga(saga, **said):
            self.hold("12")
            self.pay(9900)
            self.confirm("12")

    def break_off(self, saga: str, error: BaseException, **said: Any) -> None:
        """Hold a room, and have something go wrong."""
        with self.guard.saga(saga, **said):
            self.hold("12")
            raise error

    def settle(self, ask: Callable[..., Any], key: str | None, how: str, **said: object) -> None:
        """Settle doubt as an operator."""
        word = {"as": how, "fence": 1, "reason": "asked the provider"} | said
        assert ask("POST", f"/v1/effects/{key}/resolve", word).status == 200
