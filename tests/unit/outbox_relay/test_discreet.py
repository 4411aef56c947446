"""Whatever a receiver says, and however often a text was cut: what is kept of it holds no secret."""

import base64
from typing import Literal
from uuid import UUID

import pytest

from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Delivered, Outgoing, Reached, Result, Retryable, Unknown
from outbox_relay.sinks.discreet import DiscreetSink

SECRETS = {"file:/token": "Bearer t0ps3cret/+ü", "file:/short": "pw"}
OUTGOING = Outgoing(
    message=UUID(int=1), epoch=1, number=1, destination="d", content_type="a/b", body=b"", headers={}, staged_at=0
)


class Talkative:
    """A sink that says what it is told to."""

    capability: Literal["sends_blindly"] = "sends_blindly"

    def __init__(self, read_secret: ReadSecret) -> None:
        self.result: Result = Unknown(why="")
        for name in SECRETS:
            read_secret(name)

    async def send(self, outgoing: Outgoing) -> Result:
        return self.result

    async def check(self) -> Reached:
        return Reached(ok=True, detail="I am Bearer t0ps3cret/+ü.")

    async def close(self) -> None:
        return None


async def heard(said: str) -> str:
    """Return what is kept of what a sink says."""
    sinks: list[Talkative] = []

    def opened(read_secret: ReadSecret) -> Talkative:
        sinks.append(Talkative(read_secret))
        return sinks[0]

    sink = DiscreetSink(opened, SECRETS.__getitem__)
    sinks[0].result = Retryable(why=said, retry_after=3)
    result = await sink.send(OUTGOING)
    assert isinstance(result, Retryable)
    assert result.retry_after == 3
    sinks[0].result = Delivered(receipt=said)
    assert await sink.send(OUTGOING) == Delivered(receipt=result.why)
    assert await sink.check() == Reached(ok=True, detail="I am ….")
    await sink.close()
    return result.why


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("401: who is Bearer t0ps3cret/+ü?", "401: who is …?"),
        ("no t0ps3cret/+ü here, nor there: t0ps3cret/+ü", "no … here, nor there: …"),
        ("to http://x/?t=Bearer%20t0ps3cret%2F%2B%C3%BC&u=1", "to http://x/?t=…&u=1"),
        ("to http://x/?t=Bearer+t0ps3cret%2F%2B%C3%BC", "to http://x/?t=…"),
        ("b'Bearer t0ps3cret/+\\xc3\\xbc'", "b'…'"),
        ("cut: Bearer t0ps3c", "cut: …"),
        ("cut: Bearer t0ps3c. Nothing was sent.", "cut: …. Nothing was sent."),
        ("pw stays: what is so short is no secret", "pw stays: what is so short is no secret"),
        ("the first line\nand the next", "the first line"),
        ("the first line\r\nand the next", "the first line"),
        ("200: ok", "200: ok"),
        ("", ""),
    ],
)
async def test_no_secret_is_kept(said: str, kept: str) -> None:
    assert await heard(said) == kept


@pytest.mark.parametrize("user", ["", "u", "us", "use"])
async def test_no_secret_is_kept_wherever_in_a_login_it_stands(user: str) -> None:
    login = base64.b64encode(f"\0{user}\0Bearer t0ps3cret/+ü".encode()).decode()
    kept = await heard(f"535 {login} is wrong")
    assert base64.b64encode(b"t0ps3cret").decode()[2:-2] not in kept
    assert len(kept) < 30
    assert kept.startswith("535 ")
    assert kept.endswith(" is wrong")


async def test_a_secret_that_was_changed_a_moment_ago_is_not_told_either() -> None:
    values = iter(["old-secret-1", "new-secret-2"])
    sinks: list[Talkative] = []

    def opened(read_secret: ReadSecret) -> Talkative:
        sinks.append(Talkative(str))
        for _ in range(2):
            read_secret("file:/token")
        return sinks[0]

    sink = DiscreetSink(opened, lambda _: next(values))
    sinks[0].result = Unknown(why="old-secret-1, new-secret-2")
    assert await sink.send(OUTGOING) == Unknown(why="…, …")
