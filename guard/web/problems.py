"""Problems as answers: RFC 9457 bodies, one mapping for every error that a handler may raise."""

import math
import random
from collections.abc import Mapping
from typing import Final, Literal

import msgspec
from litestar import Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException

from guard.logs import logger, request_id
from guard.ports.store import FileUnavailable, StoreUnavailable
from guard.service.outcomes import Refused
from guard.service.queues import Overloaded
from guard.web.answer import Answer
from guard.web.holds import hold_ref
from guard.web.wire import wire_key
from twiceshy_contract.problems import PROBLEMS, FieldError, Problem, ProblemCode, problem_type
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.wire import PROBLEM_JSON

STORE_RETRY_SECONDS = 1.0

ApiRequest = Request[None, None, State]


class Unreadable(Exception):
    """The request's body cannot be read at all: it is too large, or of another kind."""

    def __init__(self, code: Literal["unsupported-media-type", "too-large"]) -> None:
        super().__init__(code)
        self.code: Final = code


_log = logger("guard.web")
_chance: Final = random.SystemRandom()
_CODES: dict[int, ProblemCode] = {
    401: "unauthorized",
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    415: "unsupported-media-type",
}


def refused(refusal: Refused) -> Answer:
    """Answer a refusal of the service."""
    return _answer(refusal)


def answer(
    code: ProblemCode,
    detail: str,
    *,
    errors: tuple[FieldError, ...] = (),
    headers: Mapping[str, str] | None = None,
) -> Answer:
    """Write a problem that is about nothing which the service knows. What to do next is part of the detail."""
    return _answer(Refused(code=code, detail=detail), errors, headers)


def _answer(refusal: Refused, errors: tuple[FieldError, ...] = (), headers: Mapping[str, str] | None = None) -> Answer:
    said = dict(headers or {})
    if refusal.retry_after is not None:
        said["Retry-After"] = str(math.ceil(refusal.retry_after))
    if refusal.code == "unauthorized":
        said["WWW-Authenticate"] = "Bearer"
    problem = _problem(refusal, errors)
    return Answer(problem.status, msgspec.json.encode(problem), refusal.code, PROBLEM_JSON, said)


def _problem(refusal: Refused, errors: tuple[FieldError, ...]) -> Problem:
    kind, effect = PROBLEMS[refusal.code], refusal.effect
    key = None if effect is None else wire_key(effect.intent.key)
    return Problem(
        type=problem_type(refusal.code),
        title=kind.title,
        status=kind.status,
        detail=f"{refusal.detail} {kind.remedy}",
        errors=errors,
        paths=refusal.paths,
        key=key,
        state=None if effect is None else effect.life.state,
        tool=None if effect is None else effect.intent.tool,
        tool_version=None if effect is None else effect.intent.tool_version,
        run=None if effect is None else effect.intent.run,
        step=None if effect is None else effect.intent.step,
        generation=None if effect is None else effect.intent.generation,
        occurrence=None if effect is None else effect.intent.occurrence,
        fence=None if effect is None else effect.life.fence,
        retry_after_seconds=refusal.retry_after,
        request_id=request_id.get(),
        resolve=f"/v1/effects/{key}/resolve" if refusal.code == "outcome-in-doubt" else None,
        hold=None if refusal.hold is None else hold_ref(refusal.hold),
        pause=None if refusal.pause is None else wire_key(refusal.pause),
    )


def of_error(path: str, error: Exception) -> Answer:
    """Answer what a verb raised; a defect is logged with its trace."""
    match error:
        case Refusal():
            where = error.path or "the body"
            field = FieldError(path=error.path, message=error.reason)
            return answer("invalid-request", f"{where}: {error.reason}.", errors=(field,))
        case Unreadable():
            return answer(error.code, f"{PROBLEMS[error.code].title}.")
        case Overloaded():
            retry_after = error.retry_after * _chance.uniform(0.5, 1.0)  # so that not all come back at once
            return refused(Refused(code="overloaded", detail=str(error), retry_after=round(retry_after, 3)))
        case StoreUnavailable():
            _log.warning("store_unavailable", path=path, reason=str(error))
            said = str(error) if isinstance(error, FileUnavailable) else "The database did not answer."
            return refused(Refused(code="store-unavailable", detail=said, retry_after=STORE_RETRY_SECONDS))
        case _:
            _log.error("defect", path=path, exc_info=error)
            return answer("internal", f"{type(error).__name__} was raised.")


def on_error(request: ApiRequest, error: Exception) -> Response[bytes]:
    """Answer what an ordinary route raised."""
    return of_error(request.url.path, error).response()


def on_http_exception(request: ApiRequest, error: HTTPException) -> Response[bytes]:
    """Answer what the framework refused."""
    code = _CODES.get(error.status_code)
    if code is None and error.status_code < 500:
        return answer("invalid-request", f"{error.detail}.").response()
    if code is None:
        return on_error(request, error)
    details = {
        "not-found": f"Nothing is served at {request.url.path}.",
        "method-not-allowed": f"{request.url.path} has no method {request.method}.",
    }
    response = answer(code, details.get(code, f"{PROBLEMS[code].title}.")).response()
    if code == "method-not-allowed" and error.headers:
        response.headers.update(error.headers)
    return response
