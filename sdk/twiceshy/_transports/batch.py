"""Several requests as one POST of a batch, and its answers as the replies that each would have got alone."""

from collections.abc import Sequence
from typing import Final

import msgspec

from twiceshy._transports.base import NoReply, Reply, Request
from twiceshy_contract.canonical import MAX_BYTES
from twiceshy_contract.wire import PROBLEM_JSON

PATH: Final = "/v1/batch"
LARGEST: Final = MAX_BYTES - 1024
"""Bytes of requests that one batch takes."""
MOST: Final = 128
"""Requests that one batch takes, so that the first is not kept waiting for the last."""
_AROUND: Final = 64
_REFUSED: Final = frozenset({400, 413})
_TOO_LARGE: Final = 413


class _Answer(msgspec.Struct, frozen=True):
    status: int
    body: msgspec.Raw


class _Answers(msgspec.Struct, frozen=True):
    answers: list[_Answer]


_ANSWERS: Final = msgspec.json.Decoder(_Answers)


def size_of(request: Request) -> int:
    """Return about how many bytes a request takes in a batch."""
    return len(request.path) + len(request.body or b"") + _AROUND


def batched(requests: Sequence[Request]) -> Request:
    """Write requests as one."""
    items = [b'{"path":"%b","body":%b}' % (one.path.encode(), one.body or b"{}") for one in requests]
    return Request(
        method="POST",
        path=PATH,
        body=b'{"requests":[' + b",".join(items) + b"]}",
        timeout_seconds=max(one.timeout_seconds for one in requests),
    )


def replies_of(reply: Reply | NoReply, count: int) -> Sequence[Reply | NoReply] | None:
    """Read the replies of a batch; None where it was refused as a whole for what one of the requests holds."""
    if isinstance(reply, NoReply):
        return [reply] * count
    if reply.status in _REFUSED:
        return None
    if reply.status != 200:
        return [reply] * count
    try:
        answers = _ANSWERS.decode(reply.body).answers
    except (msgspec.DecodeError, RecursionError) as error:
        return [NoReply(reason=f"a batch whose answer cannot be read: {error}")] * count
    if len(answers) != count:
        return [NoReply(reason=f"a batch of {count} requests that has {len(answers)} answers")] * count
    return [_reply(answer, reply.contract) for answer in answers]


def is_for_alone(reply: Reply | NoReply) -> bool:
    """Say whether an answer was too large for its batch, so that the request is to go by itself."""
    return isinstance(reply, Reply) and reply.status == _TOO_LARGE


def _reply(answer: _Answer, contract: str | None) -> Reply:
    kind = "application/json" if answer.status < 400 else PROBLEM_JSON
    return Reply(status=answer.status, content_type=kind, body=bytes(answer.body), contract=contract)
