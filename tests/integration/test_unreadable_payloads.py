"""What no reader of a log could read is refused with its place; what is kept all the same ends a command in a line."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.integration.test_recording import append, delivery, digest_of, intent, log_of, record
from tests.service import ServiceProcess
from twiceshy._commands import main

NO_UUID = '{"$uuid":"x"}'


@pytest.mark.parametrize(
    ("events", "blobs", "place"),
    [
        ([intent(1, arguments={"a": {"$int": "zz"}})], {}, "/events/0/arguments/a/$int"),
        ([intent(1), delivery(2, 1, value=[{"$dt": "x"}])], {}, "/events/1/value/0/$dt"),
        ([intent(1, arguments={"a": {"$foo": 1}})], {}, "/events/0/arguments/a/$foo"),
        ([intent(1, arguments=[1, 2])], {}, "/events/0/arguments"),
        ([intent(1, arguments="x")], {}, "/events/0/arguments"),
        ([], {digest_of(NO_UUID): NO_UUID}, f"/blobs/{digest_of(NO_UUID)}/$uuid"),
    ],
)
def test_a_payload_that_nobody_could_read_is_refused_with_its_place(
    service: ServiceProcess, run: str, events: list[object], blobs: dict[str, str], place: str
) -> None:
    record(service, run)
    reply = append(service, run, 1, *events, blobs=blobs)
    assert (reply.status, reply.body["errors"][0]["path"]) == (400, place)
    assert log_of(service, run)["items"] == []


def test_a_log_that_names_a_plain_value_as_a_list_ends_each_command_with_one_line(
    service: ServiceProcess, run: str, tmp_path: Path
) -> None:
    record(service, run)
    text = '"a plain text"'
    assert append(service, run, 1, blobs={digest_of(text): text}).status == 200
    listed = {"m": {"$list": digest_of(text)}}
    assert append(service, run, 1, intent(1, arguments=listed)).status == 200
    for words in (["show", run], ["show", run, "--json"], ["export", run, "-o", str(tmp_path / "log.jsonl")]):
        ended = CliRunner().invoke(main, ["runs", *words, "--url", service.url])
        assert (ended.exit_code, type(ended.exception)) == (1, SystemExit), words
        (line,) = ended.stderr.splitlines()
        assert "it is named as a list and holds none" in line
