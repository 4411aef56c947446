"""What a run left unsent at its end, in a file: no event of a log is lost without a word that says where it is."""

import hashlib
import logging
import re
import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from twiceshy._recording_lines import blob_line, end_line, event_line, head_line
from twiceshy._said import said
from twiceshy._writer import Item
from twiceshy_contract.runs import RunView

RECORDINGS: Final = "recordings"
"""The folder within the spool."""
_ODD: Final = re.compile(r"[^A-Za-z0-9.]+")
_log = logging.getLogger("twiceshy")


def write_rest(folder: Path | None, view: RunView, items: Sequence[Item], *, url: str) -> Path | None:
    """Write the events that were not sent beside the outcomes that wait, and say so; return where they are."""
    first, last = items[0].event.seq, items[-1].event.seq
    what = f"Events {first} to {last} of run {view.run} were not taken by {url}"
    if folder is None:
        _log.error("%s. They are lost, because this guard has no spool.", what)
        return None
    name = _ODD.sub("-", view.run)[:100]
    path = folder / RECORDINGS / f"{name}_{secrets.token_hex(4)}.jsonl"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_bytes(b"".join(_lines(replace(view, events=last), items)))
    except OSError as error:
        _log.exception("%s. They are lost, because they cannot be written to %s: %s", what, path, said(error))
        return None
    _log.error("%s. They are kept in %s; `twiceshy runs import` appends them.", what, path)
    return path


def _lines(head: RunView, items: Sequence[Item]) -> Iterator[bytes]:
    whole = hashlib.sha256()
    count = 0
    for line in (head_line(head, after=items[0].event.seq - 1), *_body(items)):
        whole.update(line)
        count += 1
        yield line
    yield end_line(len(items), count, whole.hexdigest())


def _body(items: Sequence[Item]) -> Iterator[bytes]:
    for item in items:
        for digest, text in item.blobs.items():
            yield blob_line(digest, text.encode())
        yield event_line(item.text)
