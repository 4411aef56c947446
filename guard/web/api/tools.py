"""/v1/tools: declare, read, list."""

import msgspec
from litestar import Response, get, put
from litestar.params import FromPath

from guard.web import answers, problems
from guard.web.answer import json_answer
from guard.web.openapi import documented
from guard.web.problems import ApiRequest
from guard.web.requests import DEFAULT_TENANT, message, path_name, use_cases
from twiceshy_contract.names import ToolName
from twiceshy_contract.refusals import Refusal
from twiceshy_contract.tools import ToolDeclaration, ToolList, ToolView


@put(
    "/v1/tools/{name:str}",
    operation_class=documented(
        "Declare a tool; code may raise the class that is held, never lower it",
        body=ToolDeclaration,
        answers={200: ToolView},
        problems=(400, 401, 413, 415, 503),
    ),
)
async def declare(request: ApiRequest, name: FromPath[str]) -> Response[bytes]:
    """Answer with the declaration that holds now, which may be stricter than the one that was sent."""
    declaration = await message(request, ToolDeclaration)
    try:
        msgspec.convert(name, ToolName)
    except msgspec.ValidationError as error:
        raise Refusal(f"the tool's name in the path is not one: {error}") from error
    tool = await use_cases(request).registry.declare(DEFAULT_TENANT, name, declaration)
    return json_answer(answers.tool_view(tool)).response()


@get(
    "/v1/tools/{name:str}",
    operation_class=documented("One tool: its newest version", answers={200: ToolView}, problems=(401, 404, 503)),
)
async def show(request: ApiRequest, name: FromPath[str]) -> Response[bytes]:
    """Read one tool."""
    tool = await use_cases(request).registry.get(DEFAULT_TENANT, path_name(name))
    if tool is None:
        return problems.answer("not-found", f"Nobody declared a tool {name!r}; its calls obey the defaults.").response()
    return json_answer(answers.tool_view(tool)).response()


@get("/v1/tools", operation_class=documented("All tools, by name", answers={200: ToolList}, problems=(401, 503)))
async def listing(request: ApiRequest) -> Response[bytes]:
    """List tools."""
    tools = await use_cases(request).registry.all(DEFAULT_TENANT)
    return json_answer(ToolList(items=tuple(answers.tool_view(tool) for tool in tools))).response()


ROUTES = (declare, show, listing)
