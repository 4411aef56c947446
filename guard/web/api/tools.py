"""/v1/tools: declare, read, list, as of now or as of then."""

from collections.abc import Sequence

import msgspec
from litestar import Response, get, put
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from guard.core.effects import Instant
from guard.core.tools import Held, Tool, undeclared
from guard.service.registry import Applied, Unasked
from guard.web import answers, problems
from guard.web.answer import Answer, json_answer
from guard.web.instants import instant_of, rfc3339, rfc3339_or_none
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, caller_of, is_no_approver, message, path_name, query, use_cases
from twiceshy_contract.names import ToolName
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.tools import (
    Term,
    ToolDeclaration,
    ToolList,
    ToolQuery,
    ToolsQuery,
    ToolVersion,
    ToolVersions,
    ToolView,
)


@put(
    "/v1/tools/{name:str}",
    operation_class=documented(
        "Declare a tool; code and hints may raise the class that is held, never lower it",
        body=ToolDeclaration,
        answers={200: ToolView},
        problems=(400, 401, 403, 413, 415, 503),
    ),
)
async def declare(request: ApiRequest, name: FromPath[str]) -> Response[bytes]:
    """Answer with the declaration that holds now, which may be stricter than the one that was sent.

    A fork declares nothing: it hears what holds, and of a tool that nobody declared, what is assumed of it.
    """
    return (await _declare(request, name)).response()


@get(
    "/v1/tools/{name:str}",
    operation_class=documented(
        "One tool: the version that holds, one by its number, or the one that held at an instant",
        query=ToolQuery,
        answers={200: ToolView},
        problems=(400, 401, 404, 503),
    ),
)
async def show(request: ApiRequest, name: FromPath[str]) -> Response[bytes]:
    """Read one tool."""
    return (await _show(request, name)).response()


@get(
    "/v1/tools/{name:str}/versions",
    operation_class=documented(
        "All versions of a tool, newest first, and when each held",
        answers={200: ToolVersions},
        problems=(401, 404, 503),
    ),
)
async def versions(request: ApiRequest, name: FromPath[str]) -> Response[bytes]:
    """Read what held when."""
    history = await use_cases(request).registry.history(DEFAULT_TENANT, path_name(name))
    if not history:
        return _nobody_declared(name).response()
    return json_answer(ToolVersions(items=tuple(_version(held) for held in history))).response()


@get(
    "/v1/tools",
    operation_class=documented(
        "All tools, by name, as they hold or held at an instant",
        query=ToolsQuery,
        answers={200: ToolList},
        problems=(400, 401, 503),
    ),
)
async def listing(request: ApiRequest) -> Response[bytes]:
    """List tools."""
    asked = query(request, ToolsQuery)
    at = None if asked.at is None else instant_of(asked.at, "at")
    tools = await use_cases(request).registry.all(DEFAULT_TENANT, at)
    return json_answer(ToolList(items=tuple(answers.tool_view(tool) for tool in tools))).response()


def of_a_tool_called(name: str) -> Sequence[HTTPRouteHandler]:
    """Return the routes of a tool whose name is a verb's as well: the verb's path hides those of all tools."""

    @put(f"/v1/tools/{name}", include_in_schema=False)
    async def declare_it(request: ApiRequest) -> Response[bytes]:
        return (await _declare(request, name)).response()

    @get(f"/v1/tools/{name}", include_in_schema=False)
    async def show_it(request: ApiRequest) -> Response[bytes]:
        return (await _show(request, name)).response()

    return declare_it, show_it


async def _declare(request: ApiRequest, name: str) -> Answer:
    declaration = await message(request, ToolDeclaration)
    try:
        msgspec.convert(name, ToolName)
    except msgspec.ValidationError as error:
        raise Refusal(f"the tool's name in the path is not one: {error}") from error
    registry = use_cases(request).registry
    if caller_of(request).fork is not None:
        held = await registry.get(DEFAULT_TENANT, name)
        return json_answer(answers.tool_view(held or undeclared(DEFAULT_TENANT, name)))
    if is_no_approver(request) and declaration.declared_by == "person":
        outcome = await registry.apply_no_lower(DEFAULT_TENANT, {name: declaration}, {})
        if isinstance(outcome, Unasked):
            return unasked(outcome)
        if isinstance(outcome, Applied):
            return _found(await registry.get(DEFAULT_TENANT, name), "")
    tool = await registry.declare(DEFAULT_TENANT, name, declaration)
    return json_answer(answers.tool_view(tool))


def unasked(outcome: Unasked) -> Answer:
    """Refuse declarations that only an approver may make."""
    said = []
    if outcome.names:
        said.append(f"Calls of {_listed(outcome.names)} that a person must approve now would run without.")
    if outcome.probing:
        said.append(f"The service would send requests of its own for {_listed(outcome.probing)}.")
    return problems.answer("forbidden", f"{' '.join(said)} Only an approver's token declares that.")


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(repr(name) for name in names)


async def _show(request: ApiRequest, name: str) -> Answer:
    name, asked, registry = path_name(name), query(request, ToolQuery), use_cases(request).registry
    if asked.version is not None:
        tool = await registry.version(DEFAULT_TENANT, name, asked.version)
        return _found(tool, f"Tool {name!r} has no version {asked.version}. {_SEE_VERSIONS}")
    if asked.at is not None:
        at = instant_of(asked.at, "at")
        return _found(await registry.at(DEFAULT_TENANT, name, at), _nothing_at(name, at))
    tool = await registry.get(DEFAULT_TENANT, name)
    return _nobody_declared(name) if tool is None else json_answer(answers.tool_view(tool))


_SEE_VERSIONS = "GET /v1/tools/{name}/versions lists those that there are."


def _nothing_at(name: str, at: Instant) -> str:
    return f"At {rfc3339(at)} nobody had declared a tool {name!r} yet; its calls obeyed the defaults."


def _found(tool: Tool | None, otherwise: str) -> Answer:
    return problems.answer("not-found", otherwise) if tool is None else json_answer(answers.tool_view(tool))


def _nobody_declared(name: str) -> Answer:
    return problems.answer("not-found", f"Nobody declared a tool {name!r}; its calls obey the defaults.")


def _version(held: Held) -> ToolVersion:
    view = answers.tool_view(held.tool)
    return ToolVersion(
        **msgspec.structs.asdict(view),
        declared_by=view.declaration.declared_by,
        terms=tuple(Term(since=rfc3339(since), until=rfc3339_or_none(until)) for since, until in held.terms),
    )


ROUTES = (declare, show, versions, listing)
