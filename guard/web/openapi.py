"""The API's description: every operation declares its body, answers and problems beside its handler."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

import msgspec
from litestar.openapi import OpenAPIConfig
from litestar.openapi.plugins import JsonRenderPlugin, SwaggerRenderPlugin
from litestar.openapi.spec import (
    Components,
    OpenAPI,
    OpenAPIMediaType,
    OpenAPIResponse,
    Operation,
    Parameter,
    PathItem,
    Reference,
    RequestBody,
    Schema,
    SecurityScheme,
)
from litestar.openapi.spec.enums import OpenAPIType

from guard.web.verb import Verbs
from twiceshy_contract.problems import PROBLEMS, Problem
from twiceshy_contract.wire import PROBLEM_JSON

_COMPONENTS: Final = "#/components/schemas/{name}"
_KEY: Final = Parameter(
    name="key", param_in="path", required=True, schema=Schema(type=OpenAPIType.STRING, pattern="^[0-9a-f]{64}$")
)
_wire_structs: Final[set[type[msgspec.Struct]]] = {Problem}

Struct = type[msgspec.Struct]


def documented(
    summary: str,
    *,
    answers: Mapping[int, Struct | tuple[Struct, ...]],
    body: Struct | tuple[Struct, ...] | None = None,
    query: Struct | None = None,
    problems: tuple[int, ...] = (),
) -> type[Operation]:
    """Describe an operation. Problems are given by status; the description names their codes."""
    kinds = {status: kind if isinstance(kind, tuple) else (kind,) for status, kind in answers.items()}
    bodies = () if body is None else body if isinstance(body, tuple) else (body,)
    _wire_structs.update(*kinds.values(), bodies)

    @dataclass
    class Documented(Operation):
        """The operation as it is served."""

        def __post_init__(self) -> None:
            self.summary = summary
            self.responses = {str(status): _answer(kind) for status, kind in kinds.items()}
            self.responses |= {str(status): _problem(status) for status in problems}
            if bodies:
                self.request_body = RequestBody(content={"application/json": _media(*bodies)}, required=True)
            if query is not None:
                self.parameters = [*(self.parameters or ()), *_parameters(query)]

    return Documented


def config(version: str) -> OpenAPIConfig:
    """Return what is said of the API as a whole."""
    return OpenAPIConfig(
        title="Twiceshy",
        version=version,
        description="The guard that every mutating tool call of an agent passes before it may touch the world.",
        render_plugins=[JsonRenderPlugin(path="/openapi.json"), SwaggerRenderPlugin()],
    )


def add_verbs(description: OpenAPI, verbs: Verbs) -> None:
    """Add the operations that are served in front of the framework's routes."""
    paths = description.paths = description.paths or {}
    for verb in verbs.all:
        item = paths.setdefault(verb.path, PathItem())
        item.post = verb.operation(operation_id=verb.operation_id or verb.path.rpartition("/")[2])
        if "{key}" in verb.path:
            item.post.parameters = [_KEY]


def add_wire_structs(description: OpenAPI) -> None:
    """Add the schemas of all wire structs, which the framework does not find since handlers read bodies themselves."""
    structs = sorted(_wire_structs, key=lambda struct: struct.__name__)
    _, schemas = msgspec.json.schema_components(structs, ref_template=_COMPONENTS, schema_hook=_any_json)
    description.components = Components(
        schemas=cast("dict[str, Schema]", schemas),
        security_schemes={"bearer": SecurityScheme(type="http", scheme="bearer")},
    )
    description.security = [{"bearer": []}, {}]  # a service without tokens asks for none


def _any_json(_kind: type) -> dict[str, object]:
    """Describe `object`, which stands for any JSON value."""
    return {"description": "any JSON value, in tagged form"}


def _media(*kinds: Struct) -> OpenAPIMediaType:
    one, *others = [Reference(ref=_COMPONENTS.format(name=kind.__name__)) for kind in kinds]
    return OpenAPIMediaType(schema=Schema(one_of=[one, *others]) if others else one)


def _answer(kinds: tuple[Struct, ...]) -> OpenAPIResponse:
    description = " Or: ".join((kind.__doc__ or kind.__name__).partition("\n")[0] for kind in kinds)
    return OpenAPIResponse(description=description, content={"application/json": _media(*kinds)})


def _problem(status: int) -> OpenAPIResponse:
    codes = ", ".join(sorted(code for code, kind in PROBLEMS.items() if kind.status == status))
    return OpenAPIResponse(description=f"One of: {codes}", content={PROBLEM_JSON: _media(Problem)})


def _parameters(kind: Struct) -> list[Parameter | Reference]:
    schema = msgspec.json.schema(kind, schema_hook=_any_json)["$defs"][kind.__name__]["properties"]
    return [
        Parameter(name=name, param_in="query", schema=cast("Schema", member), required=False)
        for name, member in schema.items()
    ]
