"""Append what a run's writer could not send: in its own name, so that nothing is added that others have gone past."""

from typing import Final, TypeVar

import click
import msgspec

from twiceshy._commands.parameters import in_path
from twiceshy._commands.recordings_upload import BATCH_BYTES, SECONDS, AppendOfTexts, Imported
from twiceshy._commands.service import Refused, Service
from twiceshy._recording_parts import BlobPart, EventPart
from twiceshy._recording_rest import Rest
from twiceshy._transports.base import Request
from twiceshy_contract.events import MAX_EVENTS, AppendAnswer
from twiceshy_contract.runs import RunView

T = TypeVar("T")
_WHY: Final = {
    "run-taken-over": "another writer has gone on with that run since, from the events that the service had",
    "recording-gap": "the service lacks events before them; import the rest that holds those first",
    "recording-diverged": "the service has other events in their place",
    "blobs-missing": "values that they name were never taken by this service",
    "not-found": "this service has no such run",
}


def append_rest(service: Service, rest: Rest) -> Imported:
    """Append the events of a rest that the service has not."""
    run = rest.head.run
    path = f"/v1/runs/{in_path(run)}"
    try:
        known = service.ask(Request(method="GET", path=path), RunView)[0].events
        for append in _appends(rest):
            body = msgspec.json.encode(append)
            request = Request(method="POST", path=f"{path}/events", body=body, timeout_seconds=SECONDS)
            service.ask(request, AppendAnswer)
    except Refused as refused:
        why = _WHY.get(refused.code)
        if why is None:
            raise
        what = f"Events {rest.after + 1} to {rest.events} of run {run} are not appended: {why}. {refused.message}"
        raise click.ClickException(what) from refused
    return Imported(run=run, events=max(known, rest.events), added=max(rest.events - known, 0))


def _appends(rest: Rest) -> list[AppendOfTexts]:
    """Return the requests of the rest's own writer, in their order."""
    requests: list[AppendOfTexts] = []
    events: list[msgspec.Raw] = []
    blobs: dict[str, str] = {}
    size = 0
    for part in rest.parts:
        if (size and size + len(part.text) > BATCH_BYTES) or len(events) == MAX_EVENTS:
            requests.append(AppendOfTexts(rest.head.epoch, events, blobs))
            events, blobs, size = [], {}, 0
        size += len(part.text)
        match part:
            case BlobPart(digest, text):
                blobs[digest] = text.decode()
            case EventPart(text):
                events.append(msgspec.Raw(text))
    return [*requests, AppendOfTexts(rest.head.epoch, events, blobs)]
