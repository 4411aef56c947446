"""Fetch a run's log from the service: its head, its events page by page, and the blobs that they name.

What comes is believed as little as a file: it is written into a temporary one, which is then verified.
"""

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, Final, Protocol, TypeVar, assert_never, cast
from urllib.parse import quote

import msgspec

from twiceshy._ask import Answered, ask
from twiceshy._drive import drive
from twiceshy._environment import Environment
from twiceshy._recording_lines import PartNumber
from twiceshy._recording_loading import Loaded, loaded
from twiceshy._recording_parts import Part, parts
from twiceshy._recording_writing import write_recording
from twiceshy._replies import Unanswered
from twiceshy._said import ended
from twiceshy._steps import Flow, Raised, Returned
from twiceshy._transports.base import Request
from twiceshy.exceptions import EffectRef, GuardUnavailable, RecordingRefused
from twiceshy_contract.events import BlobsAnswer, ReadBlobsRequest
from twiceshy_contract.problems import Problem
from twiceshy_contract.runs import RunView

T = TypeVar("T")
_SECONDS: Final = 60.0
_MOST_BLOBS: Final = 200
"""Asked for at once: the service gives as many of them as fit into some megabytes."""


class Ask(Protocol):
    """Send a request and return its answer, read. Raises for every other."""

    def __call__(self, request: Request, kind: type[T], /) -> T:
        """Ask."""
        ...


class RawPage(msgspec.Struct, frozen=True):
    """A page of a log, with the texts of its events as they came."""

    items: tuple[msgspec.Raw, ...]
    next: int | None


def run_path(run: str) -> str:
    """Return where a run is found."""
    return f"/v1/runs/{quote(run, safe='')}"


def head_of(asking: Ask, run: str) -> RunView:
    """Return a run as the service tells it. Raises RecordingRefused for one that was not recorded."""
    head = asking(Request(method="GET", path=run_path(run), timeout_seconds=_SECONDS), RunView)
    if not head.events:
        raise RecordingRefused(
            f"Run {run} was not recorded: it has no events. Record runs with `guard.run(name, record=True)`.",
            reason="it has no events",
        )
    return head


def download(
    asking: Ask,
    head: RunView,
    file: BinaryIO,
    *,
    number: PartNumber | None = None,
    advance: Callable[[], None] = lambda: None,
) -> None:
    """Write a run's log, up to what its head names, into a file as a recording. `advance` is called with each event."""
    write_recording(file, head, parts_of(asking, head), number=number, advance=advance)


def parts_of(asking: Ask, head: RunView) -> Iterator[Part]:
    """Return the parts of a run's log, up to the event that its head names."""
    return parts(head, events_of(asking, head), _Blobs(asking, head.run))


def events_of(asking: Ask, head: RunView) -> Iterator[bytes]:
    """Return the texts of a run's events, up to the one that its head names."""
    after: int | None = 0
    count = 0
    while count < head.events and after is not None:
        request = Request(method="GET", path=f"{run_path(head.run)}/events?after={after}", timeout_seconds=_SECONDS)
        page = asking(request, RawPage)
        for item in page.items[: head.events - count]:
            count += 1
            yield bytes(item)
        after = page.next
    if count < head.events:
        raise RecordingRefused(
            f"Of the {head.events} events of run {head.run} only {count} are kept: it is too old to be exported. Look "
            "for a file of it.",
            reason="its log is not kept any more",
        )


class _Blobs:
    """The blobs of a service, as many at a time as it gives."""

    def __init__(self, asking: Ask, run: str) -> None:
        self._ask = asking
        self._run = run

    def read(self, digests: Sequence[str]) -> dict[str, bytes]:
        """Read some; one that is not what its digest says is refused, and so is one that is not kept."""
        asked = tuple(digests[:_MOST_BLOBS])
        body = msgspec.json.encode(ReadBlobsRequest(digests=asked))
        answer = self._ask(
            Request(method="POST", path="/v1/blobs/read", body=body, timeout_seconds=_SECONDS), BlobsAnswer
        )
        texts = {digest: text.encode() for digest, text in answer.blobs.items() if digest in asked}
        for digest in asked:
            if digest in texts and hashlib.sha256(texts[digest]).hexdigest() != digest:
                self._refuse(f"the service gives another text for blob {digest}")
            if digest not in texts and (digest not in answer.left or not texts):
                self._refuse(f"blob {digest}, which it names, is not kept any more")
        return texts

    def _refuse(self, reason: str) -> None:
        raise RecordingRefused(
            f"Run {self._run} cannot be exported: {reason}. Look for a file of it that was made before.", reason=reason
        )


def fetched(environment: Environment, run: str) -> Loaded:
    """Fetch a run's log into a temporary file, and load it."""

    def asking(request: Request, kind: type[T], /) -> T:
        answer: T = drive(_answered(environment, run, request, kind), environment.transport)
        return answer

    file = cast("BinaryIO", tempfile.TemporaryFile(prefix="twiceshy-"))  # noqa: SIM115 - the recording keeps it open
    try:
        download(asking, head_of(asking, run), file)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    (recording,) = loaded(file, f"the log of run {run}")
    return recording


def _answered(environment: Environment, run: str, request: Request, kind: Any) -> Flow[Returned | Raised]:
    until = environment.clock() + max(environment.limits.unavailable_seconds, _SECONDS)
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(kind)
    answer: Answered[Any] | Problem | Unanswered = yield from ask(environment, request, decoder, until=until)
    match answer:
        case Answered():
            return Returned(answer.value)
        case Problem(code="not-found"):
            raise RecordingRefused(
                f"There is no run {run!r}. `twiceshy runs list` shows those there are.", reason=answer.code
            )
        case Problem():
            raise RecordingRefused(
                f"The recording of run {run} cannot be fetched: {ended(answer.detail or answer.title)}",
                reason=answer.code,
            )
        case Unanswered(reason):
            raise GuardUnavailable(
                f"The recording of run {run} is not fetched: the guard's service at {environment.url} gives no answer "
                f"({reason}). Try again later.",
                effect=EffectRef(tool="recording", run=run),
            )
        case _:
            assert_never(answer)
