"""One sentence for a call of a run: what the code asked of the world, and what it got."""

from collections.abc import Mapping
from typing import Final, assert_never

from twiceshy._in_brief import SHORT, brief, cut, named, printable, quoted, returned
from twiceshy._model_replies import Reply, WantedCall, asked_of, reply_of
from twiceshy._model_streams import Streamed, streamed
from twiceshy_contract.events import Delivery, EventKind, Intent
from twiceshy_contract.outcomes import ErrorOutcome

_PLAIN: Final[tuple[EventKind, ...]] = ("time", "random", "uuid", "sleep")
_MOST_CALLS: Final = 3
_WRONG: Final = 400
"""From here on the status of HTTP says that a request was refused, or failed."""
_ENDS: Final[Mapping[str, str]] = {
    "complete": "",
    "stopped": ", and the code read no further",
    "cancelled": ", and the reader was cancelled",
    "cut": ", and was cut off",
}


def sentence(
    intent: Intent, arguments: Mapping[str, object], delivery: Delivery | None = None, value: object = None
) -> str:
    """Say what a call was and how it ended; `arguments` and `value` are whole, in tagged form."""
    began = _asked(intent, arguments)
    if delivery is None:
        return f"{began}; no outcome reached the code."
    if delivery.outcome == "result" and intent.kind in _PLAIN:
        return _drawn(intent.kind, began, value)
    return f"{began}; {ending(intent, delivery, value)}."


def ending(intent: Intent, delivery: Delivery, value: object = None) -> str:
    """Say how a call ended, without a full stop."""
    match delivery.outcome:
        case "result":
            return _answered(intent, value)
        case "error":
            return f"it failed with {_error(delivery)}"
        case "unknown":
            return f"nobody knows whether it happened ({_error(delivery)})"
        case "cancelled":
            return "it was cancelled"
        case "expired":
            return "its time ran out before an outcome was there"
        case _:
            assert_never(delivery.outcome)


def _asked(intent: Intent, arguments: Mapping[str, object]) -> str:  # noqa: PLR0911 - one case a kind
    name = printable(intent.name)
    match intent.kind:
        case "tool_call":
            return f"Called {name}{_with(arguments)}"
        case "llm_call":
            return _asked_a_model(name, arguments)
        case "time":
            return "Read the clock"
        case "random":
            return "Drew a random number"
        case "uuid":
            return "Drew a random UUID"
        case "sleep":
            return f"Slept for {brief(arguments.get('seconds', 'a while'))} s"
        case "child_run":
            return f"Started the run {printable(intent.child or name)}{_with(arguments)}"
        case "human":
            return f"Asked a person {_question(arguments)}"
        case "custom":
            return _sent(arguments) or f"Passed {name}{_with(arguments)}"
        case _:
            assert_never(intent.kind)


def _drawn(kind: EventKind, began: str, value: object) -> str:
    return f"{began}." if kind == "sleep" else f"{began}: {brief(value)}."


def _answered(intent: Intent, value: object) -> str:
    stream = streamed(value)
    if stream is not None:
        return _in_pieces(stream)
    match value:
        case {"status": int(status), "headers": _, **rest} if status >= _WRONG or intent.kind == "custom":
            return f"the answer was {status}: {returned(rest.get('body'))}"
        case _:
            pass
    match intent.kind:
        case "human":
            return f"the answer was {returned(value)}"
        case "llm_call":
            reply = reply_of(value)
            return f"it answered {returned(value)}" if reply is None else _replied(reply)
        case "child_run":
            return f"it came to {returned(value)}"
        case _:
            return f"it returned {returned(value)}"


def _asked_a_model(name: str, arguments: Mapping[str, object]) -> str:
    asked = asked_of(arguments)
    if asked is None:
        return f"Asked {name}{_with(arguments)}"
    if asked.messages == 1:
        return f"Asked {name} {quoted(asked.text)}"
    said = f", the last by {printable(asked.role)}: {quoted(asked.text)}" if asked.text else ""
    return f"Asked {name} with {asked.messages} messages{said}"


def _in_pieces(stream: Streamed) -> str:
    """Say what came in pieces, and whether all of it was read."""
    said = "it answered" if stream.reply is None else _replied(stream.reply)
    pieces = f" in {stream.pieces} pieces" if stream.pieces != 1 else " in one piece"
    return f"{said}{pieces}{_ENDS.get(stream.end, f' ({stream.end})')}"


def _replied(reply: Reply) -> str:
    calls = ", ".join(_wanted(call) for call in reply.calls[:_MOST_CALLS])
    more = f" and {len(reply.calls) - _MOST_CALLS} more" if len(reply.calls) > _MOST_CALLS else ""
    if not calls:
        return f"it answered {quoted(reply.text)}" if reply.text else "it answered nothing (empty text)"
    said = f"it said {quoted(reply.text, SHORT // 2)} and" if reply.text else "it"
    return f"{said} asked for {calls}{more}"


def _wanted(call: WantedCall) -> str:
    if call.arguments is None:
        return printable(call.name)
    return f"{printable(call.name)}({named(call.arguments, SHORT // 2)})"


def _sent(arguments: Mapping[str, object]) -> str:
    """Say which request was sent, where the call is one."""
    match arguments:
        case {"method": str(method), "url": str(url), **rest}:
            rest.pop("headers", None)
            return f"Sent {printable(method)} {cut(printable(url), 2 * SHORT)}{_with(rest)}"
        case _:
            return ""


def _question(arguments: Mapping[str, object]) -> str:
    question = arguments.get("question", next(iter(arguments.values()), ""))
    return quoted(question) if isinstance(question, str) else brief(question)


def _with(arguments: Mapping[str, object]) -> str:
    return f" with {named(arguments)}" if arguments else ""


def _error(delivery: Delivery) -> str:
    error = delivery.error
    if not isinstance(error, ErrorOutcome):
        return "an error that was not kept"
    kind = error.type.rpartition(".")[2]
    return f"{printable(kind)}: {cut(printable(error.message), SHORT)}" if error.message else printable(kind)
