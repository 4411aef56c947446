"""Requests as wire structs: content type, size, strict JSON, and the query of a listing."""

import asyncio
import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeVar, cast, get_args, get_origin

import msgspec
from litestar.exceptions import HTTPException

from guard.core.effects import Key, TenantId
from guard.service.use_cases import UseCases
from guard.web import problems
from guard.web.answer import Answer
from guard.web.authorization import Caller
from guard.web.exchange import LARGE_BYTES, is_json, is_newer
from guard.web.problems import ApiRequest, Unreadable
from guard.web.wire import key_of
from twiceshy_contract.names import BusinessKey, RunName
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.wire import CONTRACT_HEADER, KEY_HEADER, read, refusal_of

DEFAULT_TENANT: Final = TenantId(1)
"""The tenant of every request until keys are managed."""

_KEY_FORM: Final = re.compile(r'"(?P<quoted>(?:[ !#-\[\]-~]|\\["\\])*)"|(?P<bare>[!#-\[\]-~][ !#-\[\]-~]*)')
"""A string of RFC 9651, or the same without its quotes."""
_ESCAPED: Final = re.compile(r'\\(["\\])')
_MessageT = TypeVar("_MessageT", bound=msgspec.Struct)


def use_cases(request: ApiRequest) -> UseCases:
    """Return the service that the application was wired with."""
    return cast("UseCases", request.app.state["use_cases"])


async def message(request: ApiRequest, kind: type[_MessageT], default: bytes | None = None) -> _MessageT:
    """Read the body as a wire struct; an empty one as `default` where there is one.

    Raises Refusal (400), Unreadable for another content type; the framework raises 413.
    """
    body = await request.body()
    if not body and default is not None:
        body = default
    elif not is_json(request.headers.get("content-type", "")):
        raise Unreadable("unsupported-media-type")
    newer = is_newer(request.headers.get(CONTRACT_HEADER, ""))
    if len(body) > LARGE_BYTES:
        return await asyncio.to_thread(read, body, kind, newer=newer)
    return read(body, kind, newer=newer)


def caller_of(request: ApiRequest) -> Caller:
    """Return who asks."""
    return cast("Caller", request.scope["user"])


def is_no_approver(request: ApiRequest) -> bool:
    """Say whether approvers are known by their tokens, and the request has none of these."""
    return caller_of(request).approver is None and bool(request.app.state["knows_approvers"])


def speaker(request: ApiRequest, by: str | None, what: str) -> str | Answer | None:
    """Return in whose name something is done that is an approver's where approvers are known; else the refusal.

    A token is the name then: another one is refused.
    """
    if is_no_approver(request):
        return problems.answer("forbidden", f"{what} Only an approver's token does that, and this request has none.")
    approver = caller_of(request).approver
    if approver is not None and by not in (None, approver):
        return problems.answer("forbidden", f"The token is that of {approver}, and `by` names somebody else.")
    return by or approver


def path_key(text: str) -> Key:
    """Read the key of a path. Raises HTTPException 404 for what is not one."""
    key = key_of(text)
    if key is None:
        raise HTTPException(status_code=404)
    return key


def path_name(text: str) -> str:
    """Read the name of a run or tool from a path. Raises HTTPException 404 for what can be no name."""
    try:
        return msgspec.convert(text, RunName)
    except msgspec.ValidationError as error:
        raise HTTPException(status_code=404) from error


def business_key(headers: Sequence[str], in_body: str | None) -> str | None:
    """Return the business key of body or `Idempotency-Key` headers (quoted or bare); they may not differ."""
    if not headers:
        return in_body
    form = _KEY_FORM.fullmatch(headers[0].strip()) if len(headers) == 1 else None
    if form is None:
        raise Refusal(f"send {KEY_HEADER} once, in ASCII, bare or as one quoted string", ("business_key",))
    text = form["bare"] or _ESCAPED.sub(r"\1", form["quoted"])
    try:
        msgspec.convert(text, BusinessKey)
    except msgspec.ValidationError as error:
        raise Refusal(f"the header {KEY_HEADER} is not a business key: {error}", ("business_key",)) from error
    if in_body is not None and in_body != text:
        raise Refusal(f"the header {KEY_HEADER} names another key than the body", ("business_key",))
    return text


def query(request: ApiRequest, kind: type[_MessageT]) -> _MessageT:
    """Read the query of a listing. Raises Refusal with the parameter."""
    given: dict[str, str | list[str]] = {}
    known = {field.encode_name: _takes_several(field.type) for field in msgspec.structs.fields(kind)}
    for name, text in request.query_params.multi_items():
        if name not in known:
            raise Refusal(f"there is no such parameter; there are {', '.join(sorted(known))}", (name,))
        if known[name]:
            given[name] = [*given.get(name, ()), text]
        elif name in given:
            raise Refusal("this parameter is said twice, and counts once", (name,))
        else:
            given[name] = text
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        refusal = refusal_of(str(error))
        raise Refusal(refusal.reason, refusal.steps[:1]) from error


def _takes_several(kind: Any) -> bool:
    """Say whether a parameter may be repeated: its field holds a tuple."""
    bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
    return get_origin(bare) is tuple
