"""Wire structs of a batch: several begins and reports in one request, each answered as if it had come alone."""

from typing import Annotated, Final

import msgspec

MAX_REQUESTS: Final = 512


class BatchedRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One POST of the batch: the path and the body that it would have alone. A begin in a batch does not wait."""

    path: str
    body: dict[str, object]


class BatchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Begins, commits, failures and renewals of any runs. None waits for another, and none fails another."""

    requests: Annotated[tuple[BatchedRequest, ...], msgspec.Meta(min_length=1, max_length=MAX_REQUESTS)]


class BatchedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The status and the body that the request would have got alone; from status 400 on the body is a problem."""

    status: int
    body: object


class BatchAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answers, in the order of the requests."""

    answers: tuple[BatchedAnswer, ...]
