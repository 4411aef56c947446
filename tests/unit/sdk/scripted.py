"""A service that says what the test wrote down: each begin, commit and fail takes the next scripted answer."""

import threading
from collections.abc import Awaitable, Callable
from typing import TypeAlias, Unpack
from uuid import UUID

import msgspec

from twiceshy import Guard, ToolOptions
from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy_contract.wire import CONTRACT_VERSION

Answer: TypeAlias = "Reply | NoReply | Callable[[Request], Reply | NoReply]"
KEY = "0f" * 32
DOWNSTREAM = "d0" * 32


class FakeClock:
    """Time that passes only when someone sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.sleeps: list[float] = []

    def __call__(self) -> float:
        """Tell the time."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Let time pass at once."""
        self.sleeps.append(seconds)
        self.now += seconds


class ScriptedService:
    """A transport. Declarations, releases and renewals are answered aside, so that scripts stay short."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[Request] = []
        self.declaration: Answer = declared
        self.renewal: Answer = answered(200, about(state="executing", lease_seconds_left=30.0))
        self.renewed = threading.Event()
        self.always: Answer | None = None
        self.holding: Callable[[Request], Awaitable[None]] | None = None
        self.closed = 0

    def send(self, request: Request) -> Reply | NoReply:
        """Note the request and give the next answer."""
        self.requests.append(request)
        if request.method == "PUT":
            return given(self.declaration, request)
        if request.path.endswith("/release"):
            return answered(200, about(state="pending"))
        if request.path.endswith("/renew"):
            self.renewed.set()
            return given(self.renewal, request)
        if self.always is not None:
            return given(self.always, request)
        if not self.answers:
            raise AssertionError(f"no answer is scripted for {request.path}")
        return given(self.answers.pop(0), request)

    async def send_async(self, request: Request) -> Reply | NoReply:
        """Hold the request where the test wants it held, then answer."""
        if self.holding is not None:
            await self.holding(request)
        return self.send(request)

    def close(self) -> None:
        """Count."""
        self.closed += 1

    async def close_async(self) -> None:
        """Count."""
        self.close()

    def bodies(self, path_end: str) -> list[dict[str, object]]:
        """The bodies sent to a path, in order."""
        return [
            msgspec.json.decode(request.body or b"null") for request in self.requests if request.path.endswith(path_end)
        ]

    @property
    def paths(self) -> list[str]:
        """The last parts of all paths that were posted to, in order."""
        return [request.path.rsplit("/", 1)[-1] for request in self.requests if request.method == "POST"]


def given(answer: Answer, request: Request) -> Reply | NoReply:
    return answer(request) if callable(answer) else answer


def answered(status: int, body: object) -> Reply:
    return Reply(
        status=status,
        content_type="application/json",
        body=msgspec.json.encode(body),
        contract=str(CONTRACT_VERSION),
    )


def declared(request: Request) -> Reply:
    """Hold a tool as its code says."""
    return answered(200, {"declaration": {"class": msgspec.json.decode(request.body or b"")["class"]}})


def about(**more: object) -> dict[str, object]:
    base: dict[str, object] = {
        "key": KEY, "state": "executing", "tool": "pay", "tool_version": 1, "run": "booking-42", "step": 1,
        "occurrence": 1, "generation": 0, "fence": 1,
    }  # fmt: skip
    return {**base, **more}


def executes(arguments: dict[str, object] | None = None, *, seconds: float = 30.0, left: float | None = None) -> Answer:
    """Grant the lease to whoever asks."""

    def grant(request: Request) -> Reply:
        asked = msgspec.json.decode(request.body or b"")
        return answered(
            201,
            about(
                decision="execute",
                tool=asked["tool"],
                attempt=asked["attempt"],
                arguments=arguments,
                downstream_key=DOWNSTREAM,
                lease_expires_at="2026-10-12T14:00:30Z",
                lease_seconds=seconds,
                lease_seconds_left=seconds if left is None else left,
            ),
        )

    return grant


def replays(result: object = None, *, error: dict[str, object] | None = None, **more: object) -> Reply:
    outcome = {"result": result} if error is None else {"error": error}
    body = about(
        decision="replay",
        state="succeeded",
        outcome=outcome,
        committed_at="2026-10-12T14:00:01Z",
        repeat_of={"run": "booking-42", "step": 1},
        **more,
    )
    return answered(200, body)


def committed() -> Reply:
    return answered(200, about(state="succeeded"))


def failed(state: str, **more: object) -> Reply:
    return answered(200, about(state=state, **more))


def problem(code: str, status: int = 409, **more: object) -> Reply:
    body = {"type": f"/problems/{code}", "title": code, "status": status, "detail": f"The service says {code}.", **more}
    return Reply(status=status, content_type="application/problem+json", body=msgspec.json.encode(body))


def attempts(service: ScriptedService) -> list[UUID]:
    """The attempts of all begins, in order."""
    return [UUID(str(body["attempt"])) for body in service.bodies("/v1/effects")]


def payer(guard: Guard, calls: list[int], **options: Unpack[ToolOptions]) -> Callable[..., int]:
    """Put a tool behind the guard that notes each call and doubles its amount."""

    @guard.tool(**options)
    def pay(amount: int) -> int:
        calls.append(amount)
        return amount * 2

    return pay
