"""Recordings: what is written comes back, however it is compressed, and little of it is in memory."""

import gzip
import io
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.sdk.logs import AT, LogService, conversation, digest_of, head, logged, saved
from twiceshy import Guard, GuardUnavailable, Recording, RecordingRefused
from twiceshy._payload_reading import MAX_DEEP, read_payload
from twiceshy._recording_files import written
from twiceshy._recording_parts import BlobPart
from twiceshy._transports.base import NoReply
from twiceshy_contract.events import Delivery, Event, Intent
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.runs import RunAbout

_NAMES = ("run.jsonl", "run.jsonl.gz", "run.jsonl.zst")
_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["x" * 1100, "é\n" * 700]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text("abc", min_size=1, max_size=3) | st.just("$$blob"), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.parametrize("name", _NAMES)
def test_a_conversation_survives_a_file(tmp_path: Path, name: str) -> None:
    written = conversation()
    with Recording.load(saved(written, tmp_path, name)) as read:
        assert (read.run, len(read), read.head) == ("order-1042", 6, written.head)
        assert list(read.events) == list(written.events)
        assert read.events[-1] == read.events[5]
        assert read.events[1:3] == list(written.events)[1:3]
        last = read.events[4]
        assert isinstance(last, Intent)
        messages: Any = read.arguments(last)["messages"]
        assert [message["content"][:2] for message in messages] == [f"{number}:" for number in range(9)]
        outcome = read.events[5]
        assert isinstance(outcome, Delivery)
        assert read.value(outcome) == f"2: {'y' * 2000}"
    assert [path.name for path in tmp_path.iterdir()] == [name]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    calls=st.lists(st.tuples(st.dictionaries(st.text("abc", min_size=1, max_size=3), _json, max_size=4), _json)),
    name=st.sampled_from(_NAMES),
)
def test_whatever_is_recorded_comes_back(tmp_path: Path, calls: list[Any], name: str) -> None:
    events, blobs = logged(calls)
    path = saved(Recording.from_events(head(), events, blobs), tmp_path, name)
    with Recording.load(path) as read:
        assert list(read.events) == events
        for number, (arguments, value) in enumerate(calls):
            intent, delivery = read.events[2 * number : 2 * number + 2]
            assert isinstance(intent, Intent)
            assert isinstance(delivery, Delivery)
            assert read.arguments(intent) == arguments
            assert read.value(delivery) == value


def test_a_text_that_cannot_stand_in_a_line_comes_back_to_the_byte(tmp_path: Path) -> None:
    text = '{\n  "a": [1,\r\n 2]\n}\n'
    event = Intent(seq=1, at=AT, kind="custom", name="f", digest="0" * 64, arguments={"x": {"$blob": digest_of(text)}})
    path = saved(Recording.from_events(head(), [event], {digest_of(text): text}), tmp_path)
    assert len(path.read_bytes().splitlines()) == 4
    with Recording.load(path) as read:
        assert read.arguments(event) == {"x": {"a": [1, 2]}}
        assert [part.text for part in read.parts() if isinstance(part, BlobPart)] == [text.encode()]


def test_what_the_head_and_an_errors_data_name_is_in_the_file_too(tmp_path: Path) -> None:
    text = '"given"'
    error = ErrorOutcome(type="E", message="m", data={"why": {"$blob": digest_of("[]")}})
    events: list[Event] = [
        Intent(seq=1, at=AT, kind="custom", name="f", digest="0" * 64),
        Delivery(seq=2, at=AT, intent=1, outcome="error", error=error),
    ]
    about = RunAbout(workflow="w", input={"$blob": digest_of(text)})
    recording = Recording.from_events(head(about=about), events, {digest_of(text): text, digest_of("[]"): "[]"})
    with Recording.load(saved(recording, tmp_path)) as read:
        assert read.head.about is not None
        assert read.whole(read.head.about.input) == "given"
        assert read.whole(error.data) == {"why": []}
        intent = read.events[0]
        assert isinstance(intent, Intent)
        assert read.arguments(intent) == {}


def test_however_little_is_held_the_file_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = saved(conversation(5), tmp_path).read_bytes()
    monkeypatch.setattr("twiceshy._recording_parts._HELD_BYTES", 1)
    assert saved(conversation(5), tmp_path, "again.jsonl").read_bytes() == whole


def test_a_list_that_was_named_as_a_value_before_is_followed_and_written_once(tmp_path: Path) -> None:
    first = '{"items":[1]}'
    second = f'{{"items":[2],"after":"{digest_of(first)}"}}'
    blobs = {digest_of(text): text for text in (first, second)}
    ways = ("$blob", "$list", "$list")
    events: list[Event] = [
        Intent(seq=seq, at=AT, kind="custom", name="f", digest="0" * 64, arguments={"x": {way: digest_of(second)}})
        for seq, way in enumerate(ways, 1)
    ]
    path = saved(Recording.from_events(head(), events, blobs), tmp_path)
    assert path.read_bytes().count(b'{"blob"') == 2
    with Recording.load(path) as read:
        told = [read.arguments(event) for event in read.events if isinstance(event, Intent)]
    assert told == [{"x": msgspec.json.decode(second)}, {"x": [1, 2]}, {"x": [1, 2]}]


def test_a_credential_is_in_no_file(tmp_path: Path) -> None:
    path = saved(Recording.from_events(head(credential="fork.secret"), logged([({}, 1)])[0]), tmp_path)
    assert b"secret" not in path.read_bytes()


def test_several_runs_of_a_file_are_loaded_one_by_one_and_one_is_asked_for_by_itself(tmp_path: Path) -> None:
    first, second = logged([({}, 1)])[0], logged([({"a": 1}, 2)])[0]
    path = tmp_path / "both.jsonl"
    path.write_bytes(
        saved(Recording.from_events(head("a"), first), tmp_path, "a").read_bytes()
        + saved(Recording.from_events(head("b"), second), tmp_path, "b").read_bytes()
    )
    loaded = Recording.load_all(path)
    loaded[0].close()
    loaded[0].close()
    assert [(each.run, len(each)) for each in loaded] == [("a", 2), ("b", 2)]
    assert list(loaded[1].events) == second
    loaded[1].close()
    with pytest.raises(RecordingRefused) as refusal:
        Recording.load(path)
    assert str(refusal.value) == f"{path} holds 2 runs. Load them with Recording.load_all."


def test_a_stream_that_cannot_be_read_twice_is_loaded(tmp_path: Path) -> None:
    plain = saved(conversation(), tmp_path).read_bytes()
    for text in (plain, gzip.compress(plain), zstandard.compress(plain)):
        with Recording.load(io.BytesIO(text)) as read:
            assert len(read) == 6


def test_a_file_that_was_there_stays_where_writing_fails(tmp_path: Path) -> None:
    path = saved(conversation(), tmp_path)
    before = path.read_bytes()
    broken = Recording.from_events(head(), conversation().events, {})
    with pytest.raises(RecordingRefused, match="lacks blob"):
        broken.save(path)
    assert (path.read_bytes(), list(tmp_path.iterdir())) == (before, [path])


@pytest.mark.parametrize("name", _NAMES)
def test_a_file_whose_writing_is_interrupted_is_not_there(tmp_path: Path, name: str) -> None:
    def stop() -> None:
        with written(tmp_path / name) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop()
    assert list(tmp_path.iterdir()) == []


def test_a_link_is_followed_and_a_pipe_is_written_as_it_is(tmp_path: Path) -> None:
    saved(conversation(), tmp_path, "there.jsonl")
    (tmp_path / "link.jsonl").symlink_to("there.jsonl")
    Recording.from_events(head(), logged([({}, 1)])[0]).save(tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    with Recording.load(tmp_path / "there.jsonl") as read:
        assert len(read) == 2
    with written(os.devnull) as file:
        file.write(b"gone")


def test_a_file_that_changes_after_it_was_opened_is_refused_when_it_is_read(tmp_path: Path) -> None:
    path = saved(conversation(20), tmp_path)
    with Recording.load(path) as read:
        intent = read.events[0]
        assert isinstance(intent, Intent)
        path.write_bytes(path.read_bytes().replace(b"xxx", b"xyx").replace(b'"look"', b'"book"'))
        with pytest.raises(RecordingRefused, match="it was changed since it was opened"):
            read.arguments(intent)
        with pytest.raises(RecordingRefused, match="it was changed since it was opened"):
            read.events[-2]
        path.write_bytes(b"")
        with pytest.raises(RecordingRefused, match="it was changed since it was opened"):
            read.events[20]


def test_a_log_is_fetched_from_the_service() -> None:
    service = LogService(conversation())
    with Guard("http://guard.test", transport=service, spool=None) as guard, Recording.of(guard, "order-1042") as read:
        assert list(read.events) == list(conversation().events)
        intent = read.events[4]
        assert isinstance(intent, Intent)
        assert len(str(read.arguments(intent))) > 4500
        asked = [digest for _, path, body in service.asked if path == "/v1/blobs/read" for digest in body["digests"]]
        assert set(asked) == set(service.blobs)


def test_events_that_are_recorded_meanwhile_are_not_fetched() -> None:
    recording = conversation()
    service = LogService(recording)
    service.runs["order-1042"] = head(events=4)
    with Guard("http://guard.test", transport=service, spool=None) as guard, guard.recording("order-1042") as read:
        assert list(read.events) == list(recording.events)[:4]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda it: it.runs.clear(), "There is no run 'order-1042'. `twiceshy runs list` shows those there are."),
        (lambda it: it.blobs.popitem(), "Run order-1042 cannot be exported: blob "),
        (lambda it: it.blobs.update(dict.fromkeys(it.blobs, "1")), "the service gives another text for blob "),
        (lambda it: it.events["order-1042"].clear(), "Of the 6 events of run order-1042 only 0 are kept"),
        (lambda it: it.runs.update({"order-1042": head()}), "Run order-1042 was not recorded: it has no events."),
    ],
)
def test_a_log_that_the_service_has_not_whole_is_refused(spoil: Any, says: str) -> None:
    service = LogService(conversation())
    spoil(service)
    with Guard("http://guard.test", transport=service, spool=None) as guard, pytest.raises(RecordingRefused) as error:
        guard.recording("order-1042")
    assert says in str(error.value)


def test_a_service_that_does_not_answer_is_unavailable(serve: Any) -> None:
    guard, service = serve()
    service.always = NoReply(reason="refused", is_final=True)
    with pytest.raises(GuardUnavailable, match="The recording of run a b is not fetched"):
        guard.recording("a b")


def test_a_payload_of_blobs_within_blobs_ends_somewhere() -> None:
    blobs = {}
    digest = digest_of("1")
    blobs[digest] = "1"
    for _ in range(60):
        text = msgspec.json.encode({"$blob": digest}).decode()
        digest = digest_of(text)
        blobs[digest] = text
    assert read_payload({"$blob": digest}, blobs.__getitem__) == 1
    for _ in range(MAX_DEEP):
        text = msgspec.json.encode([{"$blob": digest}]).decode()
        digest = digest_of(text)
        blobs[digest] = text
    with pytest.raises(Refusal, match=f"nested more than {MAX_DEEP} deep"):
        read_payload({"$blob": digest}, blobs.__getitem__)


def test_a_few_blobs_that_name_each_other_often_are_no_bomb() -> None:
    text = f'"{"x" * 2**20}"'
    digest = digest_of(text)
    blobs = {digest: text}
    for _ in range(20):
        text = msgspec.json.encode([{"$blob": digest}] * 16).decode()
        digest = digest_of(text)
        blobs[digest] = text
    with pytest.raises(Refusal, match="larger than"):
        read_payload({"$blob": digest}, blobs.__getitem__)


@pytest.mark.parametrize(
    ("blob", "payload", "says"),
    [
        ("{", {"$blob": digest_of("{")}, "a blob is not JSON"),
        ('{"a":1}', {"$list": digest_of('{"a":1}')}, "is named as a list and holds none"),
        ("1", {"$blob": "no"}, "is not a digest: 64 lower-case hex digits"),
        ("1", {"$blob": digest_of("1"), "x": 1}, "has no other member beside it"),
        ("1", {"x": b"bytes"}, "a bytes is not JSON"),
    ],
)
def test_a_payload_that_cannot_be_made_whole_is_refused(blob: str, payload: object, says: str) -> None:
    with pytest.raises(Refusal, match=says):
        read_payload(payload, {digest_of(blob): blob}.__getitem__)
