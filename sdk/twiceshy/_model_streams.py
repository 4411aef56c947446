"""A model's answer that was recorded in pieces, put together again for people."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from twiceshy._model_replies import Reply, WantedCall, arguments_of, decoded, reply_of
from twiceshy._stream_values import STREAM

_DATA: Final = "data:"


class Streamed(NamedTuple):
    """A stream: how many pieces it has, how it ended, and what a model said in it, where that is known."""

    pieces: int
    end: str
    reply: Reply | None


def streamed(value: object) -> Streamed | None:
    """Read the value of a call that was answered in pieces; None for any other."""
    stream = value.get(STREAM) if isinstance(value, Mapping) else None
    if not isinstance(stream, Mapping) or not isinstance(stream.get("chunks"), list):
        return None
    chunks = [chunk[1] for chunk in stream["chunks"] if isinstance(chunk, list) and len(chunk) > 1]
    return Streamed(len(chunks), str(stream.get("end", "complete")), _said(chunks))


def _said(chunks: list[object]) -> Reply | None:
    """Put the pieces of a reply together, as far as they are in a known form."""
    pieces = _Pieces()
    for event in _events(chunks):
        if isinstance(event, str):
            pieces.texts.append(event)
        elif isinstance(event, Mapping):
            pieces.take(event)
    return pieces.reply()


class _Pieces:
    """Texts and calls that come in pieces; a call is known by its place in the answer."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._names: dict[object, str] = {}
        self._arguments: dict[object, list[str]] = {}
        self._whole: Reply | None = None

    def take(self, event: Mapping[str, object]) -> None:
        """Take one event of a stream."""
        match event:
            case {"choices": [{"delta": Mapping() as delta}, *_]}:
                self._chat(delta)
            case {"type": "content_block_start", "content_block": {"type": "tool_use", "name": str(name)}}:
                self._names[event.get("index")] = name
            case {"type": "content_block_delta", "delta": {"text": str(text)}}:
                self.texts.append(text)
            case {"type": "content_block_delta", "delta": {"partial_json": str(text)}}:
                self._arguments.setdefault(event.get("index"), []).append(text)
            case {"type": "response.output_text.delta", "delta": str(text)}:
                self.texts.append(text)
            case {"type": "response.completed", "response": Mapping() as response}:
                self._whole = reply_of(response)
            case _:
                return

    def _chat(self, delta: Mapping[str, object]) -> None:
        content, calls = delta.get("content"), delta.get("tool_calls")
        if isinstance(content, str):
            self.texts.append(content)
        for call in calls if isinstance(calls, list) else ():
            match call:
                case {"function": Mapping() as function}:
                    place = call.get("index")
                    if isinstance(function.get("name"), str):
                        self._names[place] = str(function["name"])
                    if isinstance(function.get("arguments"), str):
                        self._arguments.setdefault(place, []).append(str(function["arguments"]))
                case _:
                    continue

    def reply(self) -> Reply | None:
        """Return what was said; None where nothing was understood."""
        if self._whole is not None:
            return self._whole
        calls = tuple(
            WantedCall(name, arguments_of("".join(self._arguments.get(place, ())) or "{}"))
            for place, name in self._names.items()
        )
        return Reply("".join(self.texts), calls) if self.texts or calls else None


def _events(chunks: list[object]) -> Iterator[object]:
    """Return the events of a stream: its chunks, or what server-sent events in their text hold."""
    texts = [chunk for chunk in chunks if isinstance(chunk, str)]
    if len(texts) != len(chunks) or _DATA not in "".join(texts[:3]):
        yield from chunks
        return
    for line in "".join(texts).splitlines():
        if line.startswith(_DATA):
            event = decoded(line.removeprefix(_DATA).strip())
            if not isinstance(event, str):
                yield event
