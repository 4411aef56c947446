"""An OpenAPI 3 document as declarations: what the methods of HTTP promise (RFC 9110, section 9.2).

GET, HEAD, OPTIONS, TRACE and QUERY change nothing; PUT and DELETE may be repeated; POST and PATCH must not be.
A header parameter for an idempotency key makes no class lower: the provider answers a repeated *key* from its record,
and for as long as it says elsewhere. So the header is noted (`provider_key_header`), and a person says the time
(`provider_window_seconds`), within which a doubtful effect may then be run again.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from twiceshy._commands.imported import Imported, Named, Place
from twiceshy_contract.names import EffectClass
from twiceshy_contract.refusals import JsonValue, steps_of

_CLASSES: Final[Mapping[str, EffectClass]] = {
    "get": "read", "head": "read", "options": "read", "trace": "read", "query": "read",
    "put": "idempotent", "delete": "idempotent",
    "post": "side_effect", "patch": "side_effect",
}  # fmt: skip
_KEY_HEADER: Final = re.compile(r"(?:x-)?idempotency-key", re.IGNORECASE)
_MOST_REFERENCES: Final = 20
Object = dict[str, JsonValue]


def operations_of(document: JsonValue) -> Imported:
    """Read the operations below `paths`."""
    found = Imported()
    if not isinstance(document, dict) or not _is_version_3(document.get("openapi")):
        found.flaw((), "this is no OpenAPI 3 document: it has no `openapi: 3.…`")
        return found
    paths = document.get("paths", {})
    if not isinstance(paths, dict):
        found.flaw(("paths",), "paths are an object")
        return found
    reader = _Reader(document, found)
    for path, item in paths.items():
        if path.startswith("/"):
            reader.read_path(path, item)
    return found


class _Reader:
    """Reads one document, and follows its references."""

    def __init__(self, document: Object, found: Imported) -> None:
        self._document = document
        self._found = found

    def read_path(self, path: str, item: JsonValue) -> None:
        """Take the operations of one path."""
        place: Place = ("paths", path)
        resolved = self._resolved(item, place)
        if resolved is None:
            return
        shared = self._key_header(resolved.get("parameters"), (*place, "parameters"))
        for method, effect_class in _CLASSES.items():
            if method in resolved:
                self._read_operation(
                    f"{method.upper()} {path}", resolved[method], (*place, method), effect_class, shared
                )

    def _read_operation(
        self, name: str, operation: JsonValue, place: Place, effect_class: EffectClass, shared: str | None
    ) -> None:
        if not isinstance(operation, dict):
            self._found.flaw(place, "an operation is an object")
            return
        identity = operation.get("operationId", name)
        if not isinstance(identity, str):
            self._found.flaw((*place, "operationId"), "an operationId is a text")
            return
        header = self._key_header(operation.get("parameters"), (*place, "parameters")) or shared
        declaration: Object = {"class": effect_class}
        if header is not None and effect_class != "read":
            declaration["provider_key_header"] = header
        where = (*place, "operationId") if "operationId" in operation else place
        self._found.add(Named(name=identity, place=where, declaration=declaration))

    def _key_header(self, parameters: JsonValue, place: Place) -> str | None:
        """Return the name of the header that takes an idempotency key, where one of the parameters is it."""
        if parameters is None:
            return None
        if not isinstance(parameters, list):
            self._found.flaw(place, "parameters are a list")
            return None
        headers = [name for name in self._header_names(parameters, place) if _KEY_HEADER.fullmatch(name)]
        return headers[0] if headers else None

    def _header_names(self, parameters: list[JsonValue], place: Place) -> Iterator[str]:
        for number, parameter in enumerate(parameters):
            resolved = self._resolved(parameter, (*place, number))
            if resolved is not None and resolved.get("in") == "header" and isinstance(resolved.get("name"), str):
                yield str(resolved["name"])

    def _resolved(self, value: JsonValue, place: Place) -> Object | None:
        """Follow references within the document to an object; None where there is none, which is said."""
        for _ in range(_MOST_REFERENCES):
            if not isinstance(value, dict):
                self._found.flaw(place, "this is an object or a reference to one")
                return None
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            if not reference.startswith("#"):
                self._found.remark(place, f"{reference!r} leads out of the document and was not read")
                return None
            value = self._referred(reference)
        self._found.flaw(place, "this reference leads in a circle")
        return None

    def _referred(self, reference: str) -> JsonValue:
        value: JsonValue = self._document
        for step in steps_of(unquote(reference[1:])) if reference[1:2] in ("", "/") else ("",):
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
                value = value[int(step)]
            else:
                return None
        return value


def _is_version_3(version: JsonValue) -> bool:
    return isinstance(version, str) and version.startswith("3.")
