"""`twiceshy tools import`: what an MCP server and an OpenAPI document hint at, and nothing that they do not say."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.unit.sdk.commands import Asked, answering, run
from tests.unit.sdk.scripted import answered
from tests.unit.sdk.test_commands_tools_apply import item
from twiceshy._commands.mcp_tools import tools_of
from twiceshy._commands.openapi_tools import operations_of

SHOP = """\
openapi: 3.1.0
info: {title: Shop, version: "1"}
paths:
  /orders:
    get: {operationId: listOrders, responses: {200: {description: ok}}}
    post:
      operationId: orders/create
      parameters:
        - {name: idempotency-KEY, in: header, schema: {type: string}}
  /orders/{id}:
    parameters:
      - $ref: "#/components/parameters/Key"
      - {name: id, in: path, required: true}
    head: {}
    options: {}
    trace: {}
    put: {operationId: putOrder}
    delete: {operationId: dropOrder}
    patch: {operationId: patchOrder}
    post: {}
  /refunds:
    $ref: "#/components/pathItems/Refunds"
components:
  parameters:
    Key: {$ref: "#/components/parameters/Real~1Key"}
    Real/Key: {name: X-Idempotency-Key, in: header}
  pathItems:
    Refunds:
      post: {operationId: refund, parameters: [{name: idempotency-key, in: query}, {name: X-Trace, in: header}]}
"""


def classes(tools: list[Any]) -> dict[str, Any]:
    imported = tools_of({"tools": tools})
    assert imported.flaws == []
    return {tool.name: tool.declaration["class"] for tool in imported.tools}


def test_annotations_become_classes_and_a_missing_hint_is_the_default_of_the_specification() -> None:
    assert classes(
        [
            {"name": "none"},
            {"name": "null", "annotations": None},
            {"name": "empty", "annotations": {}},
            {"name": "titled", "annotations": {"title": "Add", "openWorldHint": False}},
            {"name": "reads", "annotations": {"readOnlyHint": True}},
            {"name": "reads, and says more", "annotations": {"readOnlyHint": True, "idempotentHint": False}},
            {"name": "reads, and destroys", "annotations": {"readOnlyHint": True, "destructiveHint": True}},
            {"name": "repeats", "annotations": {"idempotentHint": True}},
            {"name": "repeats and destroys", "annotations": {"idempotentHint": True, "destructiveHint": True}},
            {"name": "adds", "annotations": {"destructiveHint": False}},
            {"name": "writes", "annotations": {"readOnlyHint": False}},
        ]
    ) == {
        "none": "side_effect",
        "null": "side_effect",
        "empty": "side_effect",
        "titled": "side_effect",
        "reads": "read",
        "reads, and says more": "read",
        "reads, and destroys": "read",
        "repeats": "idempotent",
        "repeats and destroys": "idempotent",
        "adds": "side_effect",
        "writes": "side_effect",
    }


def test_methods_become_classes_and_a_key_header_is_noted_whose_time_a_person_says() -> None:
    read, side_effect, key = {"class": "read"}, {"class": "side_effect"}, {"provider_key_header": "X-Idempotency-Key"}
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"items": []}))
    result = run(handler, "tools", "import", "openapi", "-", "--dry-run", "--prefix", "shop.", input=SHOP)
    assert result.exit_code == 0, result.output
    hint = {"declared_by": "hint"}
    assert asked[0][2]["tools"] == {
        "shop.listOrders": read | hint,
        "shop.orders.create": side_effect | {"provider_key_header": "idempotency-KEY"} | hint,
        "shop.HEAD .orders.{id}": read | hint,
        "shop.OPTIONS .orders.{id}": read | hint,
        "shop.TRACE .orders.{id}": read | hint,
        "shop.putOrder": {"class": "idempotent"} | key | hint,
        "shop.dropOrder": {"class": "idempotent"} | key | hint,
        "shop.POST .orders.{id}": side_effect | key | hint,
        "shop.patchOrder": side_effect | key | hint,
        "shop.refund": side_effect | hint,
    }


@pytest.mark.parametrize("is_wrapped", [True, False])
def test_a_list_of_tools_is_sent_as_hints_with_its_prefix(is_wrapped: bool, tmp_path: Path) -> None:  # noqa: FBT001
    listed = {
        "tools": [{"name": "crm/add", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}}]
    }
    path = tmp_path / "tools.json"
    path.write_bytes(msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": listed} if is_wrapped else listed))
    asked: Asked = []
    plan = {"items": [item("x.crm.add", "new", declaration={"declared_by": "hint", "class": "idempotent"})]}
    handler = answering(asked, lambda *_: answered(200, plan))
    result = run(handler, "tools", "import", "mcp", str(path), "--prefix", "x.", "--yes")
    assert result.exit_code == 0, result.output
    tools = {"x.crm.add": {"class": "idempotent", "declared_by": "hint"}}
    assert asked == [
        ("POST", "/v1/tools/plan", {"tools": tools}),
        ("POST", "/v1/tools/apply", {"tools": tools, "seen": {"x.crm.add": 0}}),
    ]


def test_who_is_believed_more_than_a_hint_is_named() -> None:
    said = item("a", "unchanged", declaration={"declared_by": "person"})
    coded = item("b", "unchanged", declaration={"declared_by": "code"})
    handler = answering([], lambda *_: answered(200, {"items": [said, coded]}))
    listed = '{"tools": [{"name": "a"}, {"name": "b"}]}'
    result = run(handler, "tools", "import", "mcp", "-", "--yes", input=listed)
    assert result.output.splitlines()[:2] == [
        "= a: unchanged, version 1 (a person declared it, which wins)",
        "= b: unchanged, version 1 (code declared it, which wins)",
    ]


def test_a_list_that_goes_on_and_a_reference_that_leads_out_are_said() -> None:
    handler = answering([], lambda *_: answered(200, {"items": []}))
    paged = '{"tools": [{"name": "a"}], "nextCursor": "2"}'
    result = run(handler, "tools", "import", "mcp", "-", "--dry-run", input=paged)
    assert "standard input:1:28: the list goes on: import its other pages as well." in result.stderr
    apart = 'openapi: 3.0.3\npaths:\n  /a:\n    post: {parameters: [{$ref: "keys.yaml#/Key"}]}\n'
    result = run(handler, "tools", "import", "openapi", "-", "--dry-run", input=apart)
    assert "standard input:4:25: 'keys.yaml#/Key' leads out of the document and was not read." in result.stderr


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("mcp", "{", "standard input:1:2: "),
        ("mcp", "[]", "standard input:1:1: the document: this is no result of tools/list"),
        ("mcp", '{"result": {"tool": []}}', "standard input:1:2: /result: this is no result of tools/list"),
        ("mcp", '{"jsonrpc": "2.0", "error": {"code": -32601}}', "/error: this is the server's refusal"),
        ("mcp", '{"tools": []}', "there is no tool in it"),
        ("mcp", '{"tools": [\n {"title": "A"}]}', "standard input:2:2: /tools/0: a tool is an object with a `name`"),
        ("mcp", '{"tools": [{"name": "a"},\n {"name": "a"}]}', "standard input:2:3: /tools/1/name: two tools would be"),
        ("mcp", '{"tools": [{"name": "a/b"}, {"name": "a.b"}]}', "two tools would be called 'a.b'"),
        ("mcp", '{"tools": [{"name": ""}]}', "cannot be a tool's name"),
        ("mcp", '{"tools": [{"name": "a", "annotations": []}]}', "/tools/0/annotations: annotations are an object"),
        (
            "mcp",
            '{"tools": [{"name": "a",\n "annotations": {"readOnlyHint": "yes"}}]}',
            "standard input:2:18: /tools/0/annotations/readOnlyHint: a hint is true or false.",
        ),
        ("openapi", "swagger: '2.0'", "this is no OpenAPI 3 document"),
        ("openapi", "openapi: 3.1", "this is no OpenAPI 3 document"),
        ("openapi", "openapi: 3.1.0\npaths: []", "standard input:2:1: /paths: paths are an object"),
        ("openapi", "openapi: 3.1.0\npaths: {}", "there is no tool in it"),
        ("openapi", "openapi: 3.1.0\npaths:\n  /a: 1", "standard input:3:3: /paths/~1a: this is an object"),
        ("openapi", "openapi: 3.1.0\npaths:\n  /a:\n    get: 1", "4:5: /paths/~1a/get: an operation is an object"),
        ("openapi", "openapi: 3.1.0\npaths:\n  /a:\n    get: {operationId: 1}", "an operationId is a text"),
        ("openapi", "openapi: 3.1.0\npaths:\n  /a: {parameters: 1, get: {}}", "parameters are a list"),
        (
            "openapi",
            "openapi: 3.1.0\npaths:\n  /a:\n    post:\n      parameters:\n        - $ref: '#/nowhere/0'",
            "standard input:6:11: /paths/~1a/post/parameters/0: this is an object or a reference to one.",
        ),
        ("openapi", "openapi: 3.1.0\npaths:\n  /a: {$ref: '#/paths/~1a'}", "this reference leads in a circle"),
        ("openapi", "openapi: 3.1.0\npaths:\n  /a: {get: {operationId: x}, put: {operationId: x}}", "two tools would"),
    ],
)
def test_a_document_that_is_wrong_is_refused_by_its_line_and_nothing_is_asked(
    kind: str, text: str, message: str
) -> None:
    asked: Asked = []
    handler = answering(asked, lambda *_: answered(200, {"items": []}))
    result = run(handler, "tools", "import", kind, "-", "--yes", input=text)
    assert (result.exit_code, asked) == (2, [])
    assert message in result.output
    assert "Nothing was applied." in result.output


def test_an_operation_of_a_key_header_in_a_list_is_found_by_its_reference() -> None:
    document: Any = {
        "openapi": "3.0.0",
        "x-keys": [{"name": "Idempotency-Key", "in": "header"}],
        "paths": {"/a": {"post": {"parameters": [{"$ref": "#/x-keys/0"}]}}, "x-note": {"post": {}}},
    }
    (tool,) = operations_of(document).tools
    assert (tool.name, tool.declaration["provider_key_header"]) == ("POST /a", "Idempotency-Key")
