"""Recordings that are refused: each with the line where it is wrong, why, and what to do."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.unit.sdk.logs import AT, conversation, digest_of, head, saved
from twiceshy import Recording, RecordingRefused
from twiceshy_contract.events import Delivery, Event, Intent

Lines = list[bytes]
_EXPORT = "Export the run again; a recording is not edited by hand."
_FETCH = "Fetch it again whole, or export the run again."


def lines_of(tmp_path: Path) -> Lines:
    return saved(conversation(), tmp_path).read_bytes().splitlines(keepends=True)


def refusal_of(tmp_path: Path, text: bytes, name: str = "spoilt.jsonl") -> RecordingRefused:
    path = tmp_path / name
    path.write_bytes(text)
    with pytest.raises(RecordingRefused) as refusal:
        Recording.load_all(path)
    assert refusal.value.file == str(path)
    return refusal.value


def sealed(lines: Lines) -> bytes:
    """Return lines with an end that is right for them, as who spoils a recording with care would write it."""
    events = sum(line.startswith(b'{"event"') for line in lines)
    whole = hashlib.sha256(b"".join(lines)).hexdigest()
    end = {"end": {"events": events, "lines": len(lines), "sha256": whole}}
    return b"".join(lines) + json.dumps(end).encode() + b"\n"


def event_line(event: object) -> bytes:
    text = json.dumps(event)
    return f'{{"event":{text},"sha256":"{digest_of(text)}"}}\n'.encode()


def named(lines: Lines, start: bytes) -> int:
    return next(at for at, line in enumerate(lines) if line.startswith(start))


def test_an_untouched_recording_is_taken_and_one_sealed_anew_as_well(tmp_path: Path) -> None:
    lines = lines_of(tmp_path)
    (tmp_path / "again.jsonl").write_bytes(sealed(lines[:-1]))
    with Recording.load(tmp_path / "again.jsonl") as read:
        assert len(read) == 6


def test_a_file_that_is_cut_off_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    text = b"".join(lines_of(tmp_path))
    assert str(refusal_of(tmp_path, text[:-10])).endswith(_FETCH)
    for length in range(10, len(text), 97):
        refusal = refusal_of(tmp_path, text[:length])
        assert refusal.line == text[:length].count(b"\n") + (not text[:length].endswith(b"\n"))
        assert "it is cut off" in refusal.reason or "neither a recording" in refusal.reason


def test_every_line_that_is_edited_is_refused_and_named(tmp_path: Path) -> None:
    lines = lines_of(tmp_path)
    for at, line in enumerate(lines):
        letter = line.index(b'"', 20) + 1
        edited = line[:letter] + (b"b" if line[letter : letter + 1] == b"a" else b"a") + line[letter + 1 :]
        refusal = refusal_of(tmp_path, b"".join([*lines[:at], edited, *lines[at + 1 :]]))
        assert refusal.line in (at + 1, len(lines)), refusal
        assert refusal.line == at + 1 or at == 0


def test_every_line_that_is_missing_or_stands_twice_is_missed(tmp_path: Path) -> None:
    lines = lines_of(tmp_path)
    for at in range(len(lines)):
        refusal_of(tmp_path, b"".join([*lines[:at], *lines[at + 1 :]]))
        refusal_of(tmp_path, b"".join([*lines[: at + 1], lines[at], *lines[at + 1 :]]))


def test_a_changed_payload_is_refused_though_its_line_is_well_formed(tmp_path: Path) -> None:
    lines = lines_of(tmp_path)
    at = named(lines, b'{"blob"')
    lines[at] = lines[at].replace(b"xxx", b"xyx", 1)
    refusal = refusal_of(tmp_path, b"".join(lines))
    assert refusal.line == at + 1
    assert "has another digest: this line was changed since it was recorded" in refusal.reason
    assert str(refusal) == f"{refusal.file}, line {at + 1}: {refusal.reason}. {_EXPORT}"


def test_a_changed_event_is_refused(tmp_path: Path) -> None:
    lines = lines_of(tmp_path)
    at = named(lines, b'{"event"')
    lines[at] = lines[at].replace(b'"look"', b'"book"')
    refusal = refusal_of(tmp_path, b"".join(lines))
    assert (refusal.line, refusal.reason) == (
        at + 1, "the event has another digest: this line was changed since it was recorded",
    )  # fmt: skip


def spoilt(change: Callable[[Lines], object]) -> Callable[[Lines], bytes]:
    def spoil(lines: Lines) -> bytes:
        lines.pop()
        change(lines)
        return sealed(lines)

    return spoil


def _swap_version(lines: Lines) -> None:
    lines[0] = lines[0].replace(b'{"recording":1', b'{"recording":2')


def _more(event: dict[str, Any]) -> Callable[[Lines], object]:
    return lambda lines: lines.append(event_line({"at": AT, **event}))


_INTENT = {"phase": "intent", "seq": 7, "kind": "custom", "name": "f", "digest": "0" * 64}
_ONES = "1" * 64
_GONE = f"blob {_ONES} is named here and is not in the file before"
_DELIVERY = {"phase": "delivery", "seq": 7, "outcome": "unknown"}


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (spoilt(_swap_version), "this is version 2 of the format, and 1 is known"),
        (spoilt(_more({**_INTENT, "seq": 8})), "this is event 8 where 7 belongs: lines are missing"),
        (spoilt(_more({**_DELIVERY, "intent": 5})), "event 7 delivers the outcome of event 5, which is"),
        (spoilt(_more({**_DELIVERY, "intent": 9})), "event 7 delivers the outcome of event 9, which is"),
        (spoilt(_more({**_INTENT, "arguments": {"a": {"$blob": _ONES}}})), _GONE),
        (spoilt(_more({**_INTENT, "arguments": {"a": {"$list": _ONES}}})), _GONE),
        (spoilt(_more({**_INTENT, "arguments": {"a": {"$blob": 5}}})), "at /arguments/a/$blob: this is not a digest"),
        (spoilt(_more({**_INTENT, "kind": "guess"})), "the event cannot be read: unknown kind 'guess'"),
        (spoilt(_more({**_INTENT, "mood": "good"})), "the event cannot be read: unknown field 'mood'"),
        (spoilt(lambda lines: lines.append(b"{}\n")), "this is neither a blob nor an event nor an end"),
        (spoilt(lambda lines: lines.append(b"\n")), "this is not JSON: "),
        (spoilt(lambda lines: lines.append(b"no\n")), "this is not JSON: "),
        (spoilt(lambda lines: lines.append(b"[]\n")), "this is no line of a recording: "),
        (spoilt(lambda lines: lines.append(b'{"note":1}\n')), "is no line of a recording: unknown field 'note'"),
        (spoilt(lambda lines: lines.append(lines[0])), "another run begins before the end of the one before"),
        (spoilt(lambda lines: lines.append(lines[1])), "stands here twice"),
        (spoilt(lambda lines: lines.append(b'{"blob":"%b"}\n' % _ONES.encode())), "a blob has a value"),
        (spoilt(lambda lines: lines.append(lines[1][:-2] + b',"recording":1}\n')), "says more than one thing"),
        (spoilt(lambda lines: lines.append(_blob("[1,"))), f"blob {digest_of('[1,')} is not JSON at /1: "),
        (spoilt(lambda lines: lines.append(_blob('{"a":1,"a":2}'))), "is not JSON at /a: the key stands twice"),
        (spoilt(lambda lines: lines.append(_blob(f'[{{"$blob":"{_ONES}"}}]'))), _GONE),
        (spoilt(lambda lines: _more({**_INTENT, "arguments": {"a": {"$list": _plain(lines)}}})(lines)), "holds none"),
        (spoilt(lambda lines: lines.pop()), "the run has 6 events, and 5 are here: lines are missing"),
    ],
)  # fmt: skip
def test_what_was_spoilt_with_care_is_refused_as_well(
    tmp_path: Path, spoil: Callable[[Lines], bytes], reason: str
) -> None:
    refusal = refusal_of(tmp_path, spoil(lines_of(tmp_path)))
    assert reason in str(refusal), refusal
    assert refusal.line is not None


def _blob(text: str) -> bytes:
    return f'{{"blob":"{digest_of(text)}","text":{json.dumps(text)}}}\n'.encode()


def _plain(lines: Lines) -> str:
    """Return the digest of a blob that is no list."""
    return next(str(json.loads(line)["blob"]) for line in lines if line.startswith(b'{"blob"') and b"content" in line)


def test_a_list_whose_beginning_is_missing_is_refused(tmp_path: Path) -> None:
    lines = lines_of(tmp_path)[:-1]
    at = next(at for at, line in enumerate(lines) if b'"items"' in line)
    first_event = named(lines, b'{"event"')
    refusal = refusal_of(tmp_path, sealed([*lines[:at], *lines[at + 1 :]]))
    assert "is named here and is not in the file before" in refusal.reason
    assert refusal.line == first_event


def test_an_end_that_tells_of_other_lines_is_refused(tmp_path: Path) -> None:
    lines = lines_of(tmp_path)
    for told in ('"events":7', '"lines":99'):
        spoilt_end = lines[-1].replace(told.split(":")[0].encode() + b":6", told.encode())
        spoilt_end = spoilt_end.replace(f'"lines":{len(lines) - 1}'.encode(), told.encode())
        refusal = refusal_of(tmp_path, b"".join([*lines[:-1], spoilt_end]))
        assert refusal.line == len(lines)


def test_what_follows_the_end_is_another_run_or_refused(tmp_path: Path) -> None:
    text = b"".join(lines_of(tmp_path))
    refusal = refusal_of(tmp_path, text + b'{"blob":"no"}\n')
    assert refusal.line == text.count(b"\n") + 1
    assert "a run begins with its head here" in refusal_of(tmp_path, text + lines_of(tmp_path)[1]).reason
    assert "the file ends within this line" in refusal_of(tmp_path, text + b"x").reason


def test_other_line_ends_are_named_as_what_they_are(tmp_path: Path) -> None:
    refusal = refusal_of(tmp_path, b"".join(lines_of(tmp_path)).replace(b"\n", b"\r\n"))
    assert (refusal.line, refusal.reason) == (1, "its line ends are those of another system")
    assert "*.jsonl -text" in str(refusal)


def test_a_head_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    refusal = refusal_of(tmp_path, b'{"recording":1,"run":{"run":"a"}}\n')
    assert (refusal.line, refusal.reason[:31]) == (1, "the run's head cannot be read: ")
    assert "a run begins with its head" in refusal_of(tmp_path, b'{"recording":1}\n').reason


def test_a_line_without_end_is_not_read_into_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twiceshy._recording_reading.MAX_LINE_BYTES", 2000)
    refusal = refusal_of(tmp_path, b"".join(lines_of(tmp_path)))
    assert "the line is longer than 2000 bytes" in refusal.reason


@pytest.mark.parametrize("text", [b"", b"\n", b"  \n\n"])
def test_an_empty_file_is_refused(tmp_path: Path, text: bytes) -> None:
    refusal = refusal_of(tmp_path, text)
    assert (refusal.line, refusal.reason) == (1, "there is no recording in it")


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingRefused, match="it cannot be read: No such file or directory"):
        Recording.load(tmp_path / "missing.jsonl")
    with pytest.raises(RecordingRefused, match="it cannot be read: Is a directory"):
        Recording.load(tmp_path)


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_a_compressed_file_that_is_cut_off_or_damaged_is_refused(tmp_path: Path, name: str) -> None:
    text = saved(conversation(), tmp_path, name).read_bytes()
    cut = refusal_of(tmp_path, text[: len(text) // 2])
    assert "it cannot be decompressed" in cut.reason or "cut off" in cut.reason or "no recording" in cut.reason
    damaged = bytearray(text)
    damaged[len(text) // 2] ^= 255
    refusal_of(tmp_path, bytes(damaged))
    follows = refusal_of(tmp_path, text + b"more")
    assert "it cannot be decompressed" in follows.reason or follows.line is not None


def test_arguments_that_are_no_object_are_refused() -> None:
    event = Intent(seq=1, at=AT, kind="custom", name="f", digest="0" * 64, arguments=[1])
    with pytest.raises(RecordingRefused, match="has arguments that are no object"):
        Recording.from_events(head(), [event]).arguments(event)


def test_a_blob_that_is_not_there_is_said() -> None:
    event: Event = Delivery(seq=2, at=AT, intent=1, outcome="result", value={"$blob": _ONES})
    recording = Recording.from_events(head(), [event])
    assert isinstance(event, Delivery)
    with pytest.raises(RecordingRefused, match=f"lacks blob {_ONES}"):
        recording.value(event)


def test_a_zstd_frame_may_follow_another(tmp_path: Path) -> None:
    text = b"".join(lines_of(tmp_path))
    path = tmp_path / "frames.jsonl.zst"
    path.write_bytes(zstandard.compress(text[:500]) + zstandard.compress(text[500:]))
    with Recording.load(path) as read:
        assert len(read) == 6
