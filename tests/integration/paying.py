"""A bank that loses answers or payments, and agents with a tool that pays there, each in a process of its own."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Unpack

from tests.service import ServiceProcess
from twiceshy import Applied, DoubtfulEffect, Guard, NotFound, Tool, ToolOptions, current_effect


@dataclass(frozen=True)
class Receipt:
    """What the bank gives for a payment."""

    id: str
    amount: Decimal


@dataclass
class Bank:
    """A provider that applies a payment and then, `silent` times, lets its answer be lost; or loses it on the way."""

    silent: int = 1
    loses: int = 0
    payments: dict[str, Receipt] = field(default_factory=dict)
    asked: list[DoubtfulEffect] = field(default_factory=list)
    tries: int = 0

    def pay(self, amount: Decimal) -> Receipt:
        self.tries += 1
        key = current_effect().downstream_key
        if self.tries > self.loses:
            self.payments[key] = Receipt(f"p-{len(self.payments) + 1}", amount)
        if self.tries <= max(self.silent, self.loses):
            raise TimeoutError("the bank did not answer")
        return self.payments[key]

    def look(self, effect: DoubtfulEffect) -> Applied | NotFound:
        self.asked.append(effect)
        receipt = self.payments.get(effect.downstream_key)
        return NotFound() if receipt is None else Applied(receipt)


class Guards:
    """Guards over one service, each as it would stand in a process of its own."""

    def __init__(self, url: str, stack: ExitStack) -> None:
        self._url = url
        self._stack = stack

    def new(self) -> Guard:
        return self._stack.enter_context(Guard(self._url, spool=None))

    def paying(
        self, bank: Bank, run: str, *, is_probed: bool = True, **options: Unpack[ToolOptions]
    ) -> tuple[Guard, Tool[[Decimal], Receipt]]:
        """Return a guard with a tool that pays, whose settle time is none unless one is given."""
        guard = self.new()
        said: ToolOptions = {"name": f"pay-{run}", "settle_seconds": 0, **options}

        @guard.tool(**said)
        def pay(amount: Decimal) -> Receipt:
            return bank.pay(amount)

        if is_probed:
            pay.probe(bank.look)
        return guard, pay


def notes(error: BaseException) -> str:
    return "\n".join(getattr(error, "__notes__", ()))


def effects(service: ServiceProcess, run: str) -> list[dict[str, object]]:
    """Return the effects of a run, newest first."""
    items: list[dict[str, object]] = service.ask("GET", f"/v1/effects?run={run}").body["items"]
    return items
