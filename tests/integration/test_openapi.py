"""The description of the API: what a generator of clients and a reader of the reference need of it."""

import re
from pathlib import Path
from typing import Any

from tests.service import ServiceProcess

PAGE = (Path(__file__).parents[2] / "docs/reference/http.md").read_text()
_METHODS = ("get", "post", "put", "delete")


def _operations(service: ServiceProcess) -> list[tuple[str, str, dict[str, Any]]]:
    paths = service.ask("GET", "/schema/openapi.json").body["paths"]
    return [(path, method, item[method]) for path, item in paths.items() for method in _METHODS if method in item]


def test_every_parameter_of_a_path_is_described(service: ServiceProcess) -> None:
    for path, method, operation in _operations(service):
        described = {it["name"] for it in operation.get("parameters", ()) if it["in"] == "path"}
        assert described == set(re.findall(r"{(\w+)}", path)), (method, path)


def test_every_operation_has_a_name_of_its_own_that_code_can_have(service: ServiceProcess) -> None:
    names = [operation["operationId"] for _, _, operation in _operations(service)]
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if not name.isidentifier()] == []


def test_every_reference_leads_somewhere_and_the_token_is_described(service: ServiceProcess) -> None:
    schema = service.ask("GET", "/schema/openapi.json").body
    references = set(re.findall(r"'#/components/schemas/([^']+)'", str(schema)))
    assert references <= set(schema["components"]["schemas"])
    assert schema["components"]["securitySchemes"] == {"bearer": {"type": "http", "scheme": "bearer"}}


def test_the_reference_names_every_route(service: ServiceProcess) -> None:
    said = {
        (method.lower(), re.sub(r"{\w+}", "{}", path.partition("?")[0]))
        for method, path in re.findall(r"`(GET|POST|PUT|DELETE) (/[^`]*)`", PAGE)
    }
    served = {(method, re.sub(r"{\w+}", "{}", path)) for path, method, _ in _operations(service)}
    assert served - said == set()
