"""URLs by the rules of RFC 3986, sections 6.2.2 and 6.2.3: what no server can tell apart is one.

The order of a query is meaning, and so is a fragment (pages that run in the browser keep their place in it);
`/a` and `/a/`, `?` and none, a dot behind the host and none are two each, as the RFC has it. What a URL may not hold is
written as clients send it: in UTF-8, percent-encoded.
"""

import re
from collections.abc import Mapping
from ipaddress import AddressValueError, IPv6Address
from types import MappingProxyType
from typing import Final
from urllib.parse import quote, unquote

from guard.core.normalisers.domains import ascii_domain
from twiceshy_contract.refusals import JsonValue

_URL: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?:(?P<user>[^/?#@]*)@)?"
    r"(?P<host>\[[^\]/?#@]*\]|[^:/?#@\[\]]*)(?::(?P<port>[0-9]*))?"
    r"(?P<path>/[^?#]*)?(?P<query>\?[^#]*)?(?P<fragment>#.*)?",
    re.IGNORECASE,
)
_FORBIDDEN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")
_STRAY: Final = re.compile(r"%(?![0-9a-f]{2})", re.IGNORECASE)
_ENCODED: Final = re.compile(r"%[0-9a-f]{2}", re.IGNORECASE)
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9._~-]")
_RESERVED: Final = ":/?#[]@!$&'()*+,;=%"
_PORTS: Final[Mapping[str, str]] = MappingProxyType(
    {"http": "80", "https": "443", "ws": "80", "wss": "443", "ftp": "21"}
)
"""The port that a scheme means where none is written."""


def uniform_url(value: JsonValue) -> JsonValue:
    """Write an absolute URL in its normal form."""
    if not isinstance(value, str):
        raise ValueError("a URL is a string")
    parts = _URL.fullmatch(value.strip())
    if parts is None:
        raise ValueError("this is not an absolute URL such as https://example.com/")
    if _FORBIDDEN.search(value.strip()):
        raise ValueError("a URL holds no control characters and no backslash")
    if _STRAY.search(value):
        raise ValueError("a percent sign in a URL is written %25")
    scheme = parts["scheme"].lower()
    user = f"{_uniform(parts['user'])}@" if parts["user"] else ""
    authority = f"{user}{_host(parts['host'], scheme)}{_port(parts['port'], scheme)}"
    path = _without_dots(_uniform(parts["path"] or "/"))
    return f"{scheme}://{authority}{path}{_uniform(parts['query'] or '')}{_uniform(parts['fragment'] or '')}"


def _host(text: str, scheme: str) -> str:
    if text.startswith("["):
        return f"[{_address(text[1:-1])}]"
    try:
        host = unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise ValueError("the host of the URL is not UTF-8") from error
    if not host and scheme == "file":
        return ""
    if not host:
        raise ValueError("the URL has no host")
    return ascii_domain(host, "the URL")


def _address(text: str) -> str:
    try:
        address = IPv6Address(text)
    except AddressValueError as error:
        raise ValueError("the host of the URL is no IPv6 address") from error
    if address.scope_id is not None:
        raise ValueError("the IPv6 address of the URL names an interface, which means nothing elsewhere")
    mapped = address.ipv4_mapped
    return address.compressed if mapped is None else f"::ffff:{mapped}"


def _port(text: str | None, scheme: str) -> str:
    digits = (text or "").lstrip("0")
    if not text or digits == _PORTS.get(scheme):
        return ""
    if len(digits) > 5 or int(digits or "0") > 65535:
        raise ValueError("the port of the URL is above 65535")
    return f":{digits or '0'}"


def _uniform(text: str) -> str:
    """Decode what need not be encoded, and encode the rest in upper case."""
    return quote(_ENCODED.sub(_decoded, text), safe=_RESERVED)


def _decoded(encoded: re.Match[str]) -> str:
    character = chr(int(encoded[0][1:], 16))
    return character if _UNRESERVED.fullmatch(character) else encoded[0].upper()


def _without_dots(path: str) -> str:
    steps = path.split("/")[1:]
    kept: list[str] = []
    for step in steps:
        if step == "..":
            kept = kept[:-1]
        elif step != ".":
            kept.append(step)
    if steps[-1] in (".", ".."):
        kept.append("")
    return "/" + "/".join(kept)
