"""What a log keeps of very many values stays within what the service takes."""

import msgspec

from twiceshy._payload_reading import read_payload
from twiceshy._payloads import NOWHERE, Kept, write_arguments
from twiceshy_contract.events import MAX_EVENT_BYTES, MAX_REFERENCES
from twiceshy_contract.payloads import references
from twiceshy_contract.refusals import JsonValue


def test_arguments_with_very_many_members_are_kept_by_their_content_as_a_whole() -> None:
    arguments: dict[str, JsonValue] = {f"member-{number}": "x" * 900 for number in range(500)}
    arguments["text"] = "y" * 5000
    kept = Kept()
    written = write_arguments(arguments, kept)
    assert len(msgspec.json.encode(written.payload)) < MAX_EVENT_BYTES
    (whole,) = references(written.payload)
    assert len(references(msgspec.json.decode(kept.pending[whole.digest]))) == 1
    assert read_payload(written.payload, kept.pending.__getitem__) == arguments
    assert written.digest == write_arguments(arguments, NOWHERE).digest


def test_a_list_of_very_many_values_takes_several_nodes() -> None:
    messages: list[JsonValue] = [f"{number}: {'x' * 300}" for number in range(45_000)]
    kept = Kept()
    for count in (45_000, 45_000, 44_999):
        written = write_arguments({"messages": messages[:count]}, kept)
        assert read_payload(written.payload, kept.pending.__getitem__) == {"messages": messages[:count]}
    most = max(len(references(msgspec.json.decode(text))) for text in kept.pending.values() if text[0] == "{")
    assert most == 20_000
    assert most * 3 < MAX_REFERENCES
