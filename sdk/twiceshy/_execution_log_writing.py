"""Write a recording as an execution log, for tools that read those. What such a log has no word for is left out.

Left out are the kinds of boundaries other than calls of models and tools, calls whose outcome was not told, types of
values and errors' data, and what went on at the same time: a turn stands where its outcome was delivered.
"""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO, Final

import msgspec

from twiceshy._execution_log import ERROR, RESULT
from twiceshy._recording import Recording
from twiceshy._restore import untag
from twiceshy_contract.events import Delivery, Intent

_TURNS: Final = ("llm_call", "tool_call")
_encode: Final = msgspec.json.Encoder().encode


def write_execution_log(file: BinaryIO, recording: Recording, *, advance: Callable[[], None] = lambda: None) -> None:
    """Write one line. `advance` is called with every event."""
    head = recording.head
    about = head.about
    said: dict[str, object] = {
        "sessionId": head.run,
        "agentVersion": "unknown" if about is None else about.agent_version or "unknown",
        "promptVersion": "unknown" if about is None else about.prompt_version or "unknown",
        "startedAt": head.started_at,
    }
    file.write(_encode(said)[:-1] + b',"turns":[')
    for number, turn in enumerate(_turns(recording, advance)):
        file.write(b"," if number else b"")
        file.write(turn)
    facts = {_camel(name): value for name, value in head.facts.items() if name != "outcome"}
    outcome = head.facts.get("outcome")
    rest = ({} if outcome is None else {"outcome": str(outcome)}) | ({"metadata": facts} if facts else {})
    file.write(b"]" + (b"," + _encode(rest)[1:-1] if rest else b"") + b"}\n")


def _turns(recording: Recording, advance: Callable[[], None]) -> Iterator[bytes]:
    for event in recording.events:
        advance()
        match event:
            case Delivery(outcome="result" | "error"):
                intent = recording.events[event.intent - 1]
                if isinstance(intent, Intent) and intent.kind in _TURNS:
                    yield _turn(recording, intent, event)
            case _:
                continue


def _turn(recording: Recording, intent: Intent, delivery: Delivery) -> bytes:
    arguments = untag(recording.arguments(intent))
    is_llm = intent.kind == "llm_call"
    return _encode(
        {
            "turnId": f"{recording.run}:{intent.seq}",
            "timestamp": _instant(intent.at),
            "type": intent.kind,
            "request": arguments if is_llm else {"name": intent.name, "args": arguments},
            "response": _response(recording, delivery, is_llm=is_llm),
            "durationMs": delivery.took / 1000,
        }
    )


def _response(recording: Recording, delivery: Delivery, *, is_llm: bool) -> object:
    if not isinstance(delivery.error, msgspec.UnsetType):
        return {ERROR: {"type": delivery.error.type, "message": delivery.error.message}}
    value = untag(recording.value(delivery))
    is_plain = is_llm and isinstance(value, dict) and set(value) not in ({RESULT}, {ERROR})
    return value if is_plain else {RESULT: value}


def _instant(micros: int) -> str:
    return datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat().replace("+00:00", "Z")


def _camel(name: str) -> str:
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)
