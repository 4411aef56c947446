"""Execution logs: a session and its turns, as other tools record them, read into events.

    {"sessionId", "agentVersion", "promptVersion", "startedAt", "turns": [{"turnId", "timestamp",
     "type": "llm_call" | "tool_call", "request", "response", "durationMs"}], "outcome"?, "metadata"?}

A line holds one log, or the whole file one that is written over several lines, or a list of them. What else a log has
at its top is metadata, which its writer may spread there. A turn becomes an intent and the delivery of its outcome
behind it: such a log says nothing of what went on at the same time.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any, BinaryIO, Final, Literal, Never, cast

import msgspec

from twiceshy._encode import encode
from twiceshy._payloads import Kept, write_arguments, write_value
from twiceshy._recording_lines import refused
from twiceshy._recording_parts import BlobPart, EventPart, Part
from twiceshy._wording import in_words
from twiceshy_contract.canonical import utc
from twiceshy_contract.events import BoundaryName, Delivery, Intent
from twiceshy_contract.names import RunName
from twiceshy_contract.outcomes import ErrorOutcome
from twiceshy_contract.refusals import JsonValue, Refusal, pointer
from twiceshy_contract.runs import Fact, FactName, RunAbout, RunView
from twiceshy_contract.strict_json import decode

MAX_LOG_BYTES: Final = 2**26
ERROR: Final = "error"
RESULT: Final = "result"
_REMEDY: Final = "Correct the log, or record the run with Twiceshy."
_DEPTH: Final = 200
_HEAD: Final = re.compile(rb'\s*\{\s*"recording"')
_LOGS: Final = re.compile(rb"\s*(\{|\[\s*(\{|\Z))")
_LATEST: Final = 2**53 - 1
_ANY_ERROR: Final = "Error"


class ExecutionTurn(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One call of a model or a tool."""

    turn_id: str = ""
    timestamp: str
    type: Literal["llm_call", "tool_call"]
    request: dict[str, Any]
    response: dict[str, Any]
    duration_ms: float = 0


class ExecutionLog(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One session."""

    session_id: str
    agent_version: str | None = None
    prompt_version: str | None = None
    started_at: str
    turns: tuple[ExecutionTurn, ...]
    outcome: Any = None
    metadata: dict[str, Any] | None = None


_MEMBERS: Final = frozenset(field.encode_name for field in msgspec.structs.fields(ExecutionLog))


def looks_like_execution_log(start: bytes) -> bool:
    """Say whether a file's first line is that of execution logs: an object, or a list of them; no recording's head."""
    return _LOGS.match(start) is not None and _HEAD.match(start) is None


def execution_logs(file: BinaryIO, name: str) -> Iterator[tuple[RunView, Iterator[Part]]]:
    """Read logs, each as the head and the parts of a recording. Raises RecordingRefused with line and reason."""
    lines: dict[str, int] = {}
    for number, text in _texts(file, name):
        reading = _Reading(name, number)
        head, parts = reading.read(reading.log(text))
        if head.run in lines:
            reason = f"at /sessionId: line {lines[head.run]} has a log of session {head.run} already"
            raise refused(name, number, reason, "Give each session its own sessionId, or leave one out.")
        lines[head.run] = number
        yield head, parts


def _texts(file: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """Return the text of each log and the number of its line: a line each, or the whole file, which may be a list."""
    first = file.readline(MAX_LOG_BYTES + 1)
    is_list = first.lstrip().startswith(b"[")
    if is_list or not _is_json(first):
        whole = _checked(first + file.read(MAX_LOG_BYTES + 1 - len(first)), name, 1)
        yield from _members(whole) if is_list and _is_json(whole) else ((1, whole),)
        return
    number, text = 1, first
    while text:
        if text.strip():
            yield number, _checked(text, name, number)
        number, text = number + 1, file.readline(MAX_LOG_BYTES + 1)


def _members(whole: bytes) -> Iterator[tuple[int, bytes]]:
    """Return the text of each member of a list, and the line where it begins."""
    number, at = 1, 0
    for member in msgspec.json.decode(whole, type=list[msgspec.Raw]):
        begin = whole.index(bytes(member), at)
        number += whole.count(b"\n", at, begin)
        yield number, bytes(member)
        at = begin


def _checked(text: bytes, name: str, number: int) -> bytes:
    if len(text) > MAX_LOG_BYTES:
        raise refused(name, number, f"an execution log has at most {MAX_LOG_BYTES} bytes", _REMEDY)
    return text


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


class _Reading:
    """One log while it is read."""

    def __init__(self, name: str, line: int) -> None:
        self._name = name
        self._line = line
        self._kept = Kept()
        self._seq = 0

    def log(self, text: bytes) -> ExecutionLog:
        """Read the log's own form."""
        try:
            value = decode(text, max_depth=_DEPTH)
            log = msgspec.convert(value, ExecutionLog)
        except Refusal as refusal:
            self._refuse(f"this is neither a recording nor an execution log; as JSON it is wrong {refusal}")
        except msgspec.ValidationError as error:
            self._refuse(f"this is no recording, and as an execution log it cannot be read: {in_words(error)}")
        spread = {member: said for member, said in cast("dict[str, Any]", value).items() if member not in _MEMBERS}
        return msgspec.structs.replace(log, metadata={**spread, **(log.metadata or {})})

    def read(self, log: ExecutionLog) -> tuple[RunView, Iterator[Part]]:
        """Return a log as the head and the parts of a recording."""
        turns = [self._turn(turn, at) for at, turn in enumerate(log.turns)]
        head = RunView(
            run=self._taken(log.session_id.replace("/", "|"), RunName, "sessionId"),
            id="",
            state="finished",
            effects=0,
            started_at=self._instant(log.started_at, "startedAt")[1],
            ended_at=None if not log.turns else self._instant(log.turns[-1].timestamp, "turns")[1],
            events=2 * len(turns),
            about=self._about(log),
            facts=self._facts(log),
        )
        return head, (part for turn in turns for part in turn)

    def _turn(self, turn: ExecutionTurn, at: int) -> list[Part]:
        place = ("turns", at)
        name, request = self._asked(turn, at)
        arguments = cast("dict[str, JsonValue]", self._encoded(request, *place, "request"))
        asked = write_arguments(arguments, self._kept)
        began = self._instant(turn.timestamp, *place, "timestamp")[0]
        took = round(turn.duration_ms * 1000)
        if took < 0:
            self._refuse("a duration is not negative", *place, "durationMs")
        if began + took > _LATEST:
            self._refuse("the turn would have ended after the year 2255", *place, "durationMs")
        intent = Intent(
            seq=self._seq + 1, at=began, kind=turn.type, name=name, digest=asked.digest,
            arguments=asked.payload or msgspec.UNSET,
        )  # fmt: skip
        delivery = Delivery(
            seq=self._seq + 2, at=began + took, intent=self._seq + 1, took=took, **self._outcome(turn, at)
        )
        self._seq += 2
        blobs = [BlobPart(digest, text.encode()) for digest, text in self._kept.pending.items()]
        self._kept.pending.clear()
        return [*blobs, EventPart(msgspec.json.encode(intent)), EventPart(msgspec.json.encode(delivery))]

    def _asked(self, turn: ExecutionTurn, at: int) -> tuple[str, object]:
        """Return whom a turn calls, and with what."""
        place = ("turns", at, "request")
        if turn.type == "llm_call":
            model = turn.request.get("model") or "llm"
            return self._taken(str(model).replace("/", "|"), BoundaryName, *place, "model"), turn.request
        arguments = turn.request.get("args", {})
        if not isinstance(arguments, dict):
            self._refuse("the arguments of a tool are an object", *place, "args")
        return self._taken(turn.request.get("name"), BoundaryName, *place, "name"), arguments

    def _outcome(self, turn: ExecutionTurn, at: int) -> dict[str, Any]:
        """Return what a turn brought: its result, or an error."""
        place = ("turns", at, "response")
        response = turn.response
        if response.keys() <= {ERROR, RESULT} and response.get(ERROR) is not None and response.get(RESULT) is None:
            return {"outcome": "error", "error": self._error(response[ERROR], *place, ERROR)}
        is_tool = turn.type == "tool_call"
        is_wrapped = RESULT in response if is_tool else set(response) == {RESULT}
        given = response[RESULT] if is_wrapped else response
        value = self._encoded(None if is_tool and not response else given, *place)  # JSON drops what is undefined
        said = {"outcome": "result", "value": write_value(value, self._kept)}
        return {**said, "empty": True} if value in (None, "", [], {}) else said

    def _error(self, said: object, *place: str | int) -> ErrorOutcome:
        """Return an error that is told as its message, or with a type or a name beside that."""
        if not isinstance(said, dict):
            said = {"message": said if isinstance(said, str) else msgspec.json.encode(said).decode()}
        elif "message" not in said:
            said = {"message": msgspec.json.encode(said).decode(), **said}
        error: ErrorOutcome = self._taken({"type": said.get("name") or _ANY_ERROR, **said}, ErrorOutcome, *place)
        return error

    def _about(self, log: ExecutionLog) -> RunAbout:
        asked = next((turn.request for turn in log.turns if turn.type == "llm_call"), {})
        said = {
            "agent_version": log.agent_version,
            "prompt_version": log.prompt_version,
            "model": asked.get("model"),
            "temperature": asked.get("temperature"),
        }
        kept = {name: value for name, value in said.items() if value not in (None, "")}
        about: RunAbout = self._taken(kept, RunAbout)
        return about

    def _facts(self, log: ExecutionLog) -> dict[str, Fact]:
        """Return the outcome, and what of the metadata is plain and has a name."""
        said = {_snake(name): value for name, value in (log.metadata or {}).items()}
        if log.outcome is not None:
            said["outcome"] = log.outcome
        facts: dict[str, Fact] = {}
        for name, value in said.items():
            try:
                facts[msgspec.convert(name, FactName)] = msgspec.convert(value, Fact)
            except msgspec.ValidationError:
                continue
        return facts

    def _instant(self, text: str, *place: str | int) -> tuple[int, str]:
        """Return an instant in microseconds, and as the wire has it."""
        try:
            instant = utc(text)
        except ValueError as error:
            self._refuse(str(error), *place)
        micros = round(datetime.fromisoformat(instant).timestamp() * 1_000_000)
        if micros < 0:
            self._refuse("this date-time is before 1970", *place)
        if micros > _LATEST:
            self._refuse("this date-time is after the year 2255", *place)
        return micros, instant

    def _encoded(self, value: object, *place: str | int) -> JsonValue:
        try:
            return encode(value)
        except Refusal as refusal:
            self._refuse(refusal.reason, *place, *refusal.steps)

    def _taken(self, value: object, kind: Any, *place: str | int) -> Any:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            self._refuse(in_words(error), *place)

    def _refuse(self, reason: str, *place: str | int) -> Never:
        where = f"at {pointer(place)}: " if place else ""
        raise refused(self._name, self._line, f"{where}{reason}", _REMEDY)


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
