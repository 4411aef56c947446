"""What `twiceshy doctor` makes of what it found: pure, one finding a question, each with what to do."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, Literal

import msgspec

from twiceshy_contract.status import DatabaseView, EffectTally, OutboxTally, RedisView, StatusView
from twiceshy_contract.wire import CONTRACT_VERSION

Level = Literal["ok", "warn", "fail"]

SKEW_SECONDS: Final = 1.0
"""Beyond this, times that people read side by side mislead."""
_GIB: Final = 2**30
_LITTLE: Final = _GIB
_TOO_LITTLE: Final = 100 * 2**20


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one question; `advice` is what to do about it."""

    check: str
    level: Level
    found: str
    advice: str | None = None


def settings(given: Sequence[str]) -> Finding:
    """Name the variables that are set; no value is shown, since some are secret."""
    found = f"{', '.join(given)} set" if given else "no variable TWICESHY_* is set"
    return Finding(check="settings", level="ok", found=found)


def service(url: str, seconds: float) -> Finding:
    """Say that the service answers."""
    return Finding(check="service", level="ok", found=f"{url} answers in {seconds * 1000:.0f} ms")


def token(*, is_given: bool) -> Finding:
    """Say that requests pass."""
    found = "accepted" if is_given else "the service asks for none"
    return Finding(check="token", level="ok", found=found)


def versions(own: str, status: StatusView) -> Finding:
    """Compare the SDK with the service."""
    there = f"{status.version} (contract {status.contract})"
    if (own, CONTRACT_VERSION) == (status.version, status.contract):
        return Finding(check="versions", level="ok", found=f"SDK and service are {there}")
    return Finding(
        check="versions",
        level="warn",
        found=f"the SDK is {own} (contract {CONTRACT_VERSION}), the service {there}",
        advice="Install the same version of both.",
    )


def clock(now: str, before: float, after: float) -> Finding:
    """Compare the database's clock with this machine's, which was read before and after."""
    slack = (after - before) / 2
    skew = datetime.fromisoformat(now).timestamp() - (before + slack)
    found = (
        f"the database's clock is {abs(skew):.3f} s {'ahead of' if skew > 0 else 'behind'} this machine's, "
        f"give or take {slack:.3f} s"
    )
    if abs(skew) - slack <= SKEW_SECONDS:
        return Finding(check="clock", level="ok", found=found)
    advice = "Set both by NTP. Leases do not depend on it; times that people compare and --as-of do."
    return Finding(check="clock", level="warn", found=found, advice=advice)


def database(view: DatabaseView) -> list[Finding]:
    """Judge version, schema, durability and the room that is left."""
    findings = [_schema(view), _durability(view)]
    return findings if view.free_bytes is None else [*findings, _room(view.free_bytes)]


def doubt(effects: EffectTally) -> Finding:
    """Judge the queue of doubt."""
    if not effects.in_doubt:
        return Finding(check="doubt", level="ok", found=f"nothing in doubt, {effects.executing} executing")
    return Finding(
        check="doubt",
        level="warn",
        found=f"{effects.in_doubt} in doubt",
        advice="See `twiceshy effects list --state in_doubt`; settle each with `twiceshy effects resolve`.",
    )


def outbox(tally: OutboxTally) -> Finding:
    """Judge what was staged: messages that wait for a person are not delivered by themselves."""
    standing = {"dead": tally.dead, "unknown": tally.unknown, "parked": tally.parked}
    if not any(standing.values()):
        return Finding(check="outbox", level="ok", found=f"{tally.pending} to be sent, none waits for a person")
    return Finding(
        check="outbox",
        level="warn",
        found=", ".join(f"{count} {state}" for state, count in standing.items() if count),
        advice="See `twiceshy outbox list`; send again with `twiceshy outbox redrive`, or take back what nobody wants.",
    )


def redis(view: RedisView) -> Finding:
    """Say whether Redis is reached: without it the service answers the same, only later."""
    if view.is_reached:
        return Finding(check="redis", level="ok", found=f"{view.address} is reached")
    why = view.why or "nobody has asked it yet"
    return Finding(
        check="redis",
        level="warn",
        found=f"{view.address} is not reached ({why}): all answers come from the database",
        advice="See that it runs and that the service may log in. It is tried again every few seconds.",
    )


def spool(folder: str | None, waiting: int) -> Finding:
    """Judge the outcomes that could not be delivered yet; without a folder the spool is switched off."""
    if folder is None:
        found = "switched off: an outcome that cannot be delivered is lost, and its effect in doubt"
        return Finding(check="spool", level="ok", found=found)
    if not waiting:
        return Finding(check="spool", level="ok", found=f"nothing undelivered in {folder}")
    return Finding(
        check="spool",
        level="warn",
        found=f"{waiting} {'outcome waits' if waiting == 1 else 'outcomes wait'} in {folder} to be delivered",
        advice="See `twiceshy spool list`; `twiceshy spool drain` delivers them.",
    )


def _schema(view: DatabaseView) -> Finding:
    found = f"{view.kind} {view.version}, schema {view.revision}"
    if view.is_current:
        return Finding(check="database", level="ok", found=found)
    return Finding(
        check="database",
        level="fail",
        found=f"{found}, which is not the {view.needed} of this service",
        advice="Run `twiceshy migrate` of the newest version, and restart every service as that version.",
    )


def _durability(view: DatabaseView) -> Finding:
    found = ", ".join(f"{name}={value}" for name, value in view.durability.items())
    if view.is_durable:
        return Finding(check="durability", level="ok", found=found)
    return Finding(
        check="durability",
        level="fail",
        found=f"{found}: a power cut may take back what was recorded, and effects would happen twice",
        advice=f"Set {', '.join(name for name, value in view.durability.items() if value == 'off')} to on.",
    )


def _room(free_bytes: int) -> Finding:
    found = f"{free_bytes / _GIB:.1f} GiB free where the file is"
    if free_bytes >= _LITTLE:
        return Finding(check="room", level="ok", found=found)
    level: Level = "fail" if free_bytes < _TOO_LITTLE else "warn"
    return Finding(check="room", level=level, found=found, advice="Make room: a full disk refuses every call.")
