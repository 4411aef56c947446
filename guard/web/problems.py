"""Problems as answers: RFC 9457 bodies, one mapping for every error that a handler may raise."""

import math

import msgspec
import structlog
from litestar import Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException

from guard.core.effects import Effect
from guard.ports.store import StoreUnavailable
from guard.service.outcomes import Refused
from guard.web.wire import wire_key
from twiceshy_contract.problems import PROBLEMS, FieldError, Problem, ProblemCode, problem_type
from twiceshy_contract.refusals import Refusal

PROBLEM_JSON = "application/problem+json"
STORE_RETRY_SECONDS = 1.0

ApiRequest = Request[None, None, State]

_log = structlog.get_logger("guard.web")
_CODES: dict[int, ProblemCode] = {
    401: "unauthorized",
    404: "not-found",
    405: "method-not-allowed",
    413: "too-large",
    415: "unsupported-media-type",
}


def refused(refusal: Refused) -> Response[bytes]:
    """Answer a refusal of the service."""
    return answer(
        refusal.code, refusal.detail, effect=refusal.effect, paths=refusal.paths, retry_after=refusal.retry_after
    )


def answer(
    code: ProblemCode,
    detail: str,
    *,
    effect: Effect | None = None,
    paths: tuple[str, ...] = (),
    errors: tuple[FieldError, ...] = (),
    retry_after: float | None = None,
) -> Response[bytes]:
    """Write a problem. What to do next is part of the detail."""
    kind = PROBLEMS[code]
    key = None if effect is None else wire_key(effect.intent.key)
    problem = Problem(
        type=problem_type(code),
        title=kind.title,
        status=kind.status,
        detail=f"{detail} {kind.remedy}",
        errors=errors,
        paths=paths,
        key=key,
        state=None if effect is None else effect.life.state,
        tool=None if effect is None else effect.intent.tool,
        tool_version=None if effect is None else effect.intent.tool_version,
        step=None if effect is None else effect.intent.step,
        generation=None if effect is None else effect.intent.generation,
        occurrence=None if effect is None else effect.intent.occurrence,
        fence=None if effect is None else effect.life.fence,
        retry_after_seconds=retry_after,
        resolve=f"/v1/effects/{key}/resolve" if code == "outcome-in-doubt" else None,
    )
    headers = {} if retry_after is None else {"Retry-After": str(math.ceil(retry_after))}
    if code == "unauthorized":
        headers["WWW-Authenticate"] = "Bearer"
    return Response(msgspec.json.encode(problem), status_code=kind.status, media_type=PROBLEM_JSON, headers=headers)


def on_refusal(_request: ApiRequest, error: Refusal) -> Response[bytes]:
    """Answer 400 with the place."""
    where = error.path or "the body"
    return answer(
        "invalid-request", f"{where}: {error.reason}.", errors=(FieldError(path=error.path, message=error.reason),)
    )


def on_store_unavailable(request: ApiRequest, error: StoreUnavailable) -> Response[bytes]:
    """Answer 503: what became of the request is unknown."""
    _log.warning("store_unavailable", path=request.url.path, reason=str(error))
    return answer("store-unavailable", "The database did not answer.", retry_after=STORE_RETRY_SECONDS)


def on_http_exception(request: ApiRequest, error: HTTPException) -> Response[bytes]:
    """Answer what the framework refused."""
    code = _CODES.get(error.status_code)
    if code is None and error.status_code < 500:
        return answer("invalid-request", f"{error.detail}.")
    if code is None:
        return on_defect(request, error)
    details = {
        "not-found": f"Nothing is served at {request.url.path}.",
        "method-not-allowed": f"{request.url.path} has no method {request.method}.",
    }
    response = answer(code, details.get(code, f"{PROBLEMS[code].title}."))
    if code == "method-not-allowed" and error.headers:
        response.headers.update(error.headers)
    return response


def on_defect(request: ApiRequest, error: Exception) -> Response[bytes]:
    """Answer 500 and keep the trace for us."""
    _log.error("defect", path=request.url.path, exc_info=error)
    return answer("internal", f"{type(error).__name__} was raised.")
