"""The tools of a booking, each with what takes it back."""

from typing import Any, Final, TypedDict

from examples.provider_client import Provider
from twiceshy import Compensation, Guard, ToolOptions

_OF_PROVIDER: Final[ToolOptions] = {
    "provider_window_seconds": 86_400,  # so long the provider answers a key from its ledger
    "provider_key_header": "Idempotency-Key",
    "lease_seconds": 2,  # a killed agent is missed after two seconds
}
_HELD: Final[ToolOptions] = {
    **_OF_PROVIDER,
    "compensation": Compensation(tool="release_room", arguments={"hold": "${result.id}"}),
}
_PAID: Final[ToolOptions] = {
    **_OF_PROVIDER,
    "compensation": Compensation(tool="refund", arguments={"payment": "${result.id}"}),
}
_CONFIRMED: Final[ToolOptions] = {**_OF_PROVIDER, "effect": "idempotent"}  # a second confirmation changes nothing


class Booking(TypedDict):
    """What is booked."""

    room: str
    night: str
    cents: int


def define(guard: Guard, provider: Provider) -> dict[str, Any]:
    """Put the provider's actions behind the guard."""

    @guard.tool(**_HELD)
    def hold_room(room: str, night: str) -> dict[str, str]:
        return provider.do("hold", room=room, night=night)

    @guard.tool(**_OF_PROVIDER)
    def release_room(hold: str) -> dict[str, str]:
        return provider.do("release", hold=hold)

    @guard.tool(**_PAID)
    def pay(hold: str, cents: int) -> dict[str, str]:
        return provider.do("pay", hold=hold, cents=cents)

    @guard.tool(**_OF_PROVIDER)
    def refund(payment: str) -> dict[str, str]:
        return provider.do("refund", payment=payment)

    @guard.tool(**_CONFIRMED)
    def confirm(hold: str, payment: str) -> dict[str, str]:
        return provider.do("confirm", hold=hold, payment=payment)

    return {tool.name: tool for tool in (hold_room, release_room, pay, refund, confirm)}


def book(guard: Guard, tools: dict[str, Any], saga: str, booking: Booking) -> str:
    """Book a room, or leave nothing behind. Run again, it goes on where it was."""
    with guard.saga(saga):
        hold = tools["hold_room"](booking["room"], booking["night"])
        payment = tools["pay"](hold["id"], booking["cents"])
        return str(tools["confirm"](hold["id"], payment["id"])["id"])
