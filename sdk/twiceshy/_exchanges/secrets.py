"""What must not be stored of an exchange: credentials in URLs, forms and the members of a body.

Headers need no rule: only those of a short list are kept at all.
"""

from typing import Any, Final
from urllib.parse import unquote_plus, urlsplit, urlunsplit

from twiceshy_contract.redaction import REDACTED

IN_QUERIES: Final = frozenset((
    "access_token", "api-key", "api_key", "apikey", "authorization", "client_assertion", "client_secret", "credential",
    "credentials", "id_token", "jwt", "key", "passwd", "password", "pwd", "refresh_token", "secret", "sig", "signature",
    "subscription-key", "token", "x-amz-credential", "x-amz-security-token", "x-amz-signature", "x-goog-credential",
    "x-goog-signature",
))  # fmt: skip
"""Names of query and form fields, in lower case, whose values are left out."""
IN_REQUESTS: Final = frozenset(
    ("access_token", "api_key", "apikey", "client_assertion", "client_secret", "id_token", "password", "refresh_token")
)
"""Names at the top of a request's JSON body."""
IN_RESPONSES: Final = frozenset(("access_token", "id_token", "refresh_token"))
"""Names at the top of a response's JSON body: what a service for tokens answers."""


def without_secrets(url: str, more: frozenset[str] = frozenset()) -> str:
    """Return a URL without its user, password and fragment, and with a mark for the value of a field with a secret."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, fields_without_secrets(parts.query, more), ""))


def fields_without_secrets(query: str, more: frozenset[str] = frozenset()) -> str:
    """Return the fields of a query or form as they are, but for a mark for the values that are secret."""
    return "&".join(_field(field, more) for field in query.split("&"))


def members_without_secrets(value: Any, names: frozenset[str]) -> Any:
    """Return a JSON value with a mark for the members at its top that are secret."""
    if not isinstance(value, dict) or not any(name.lower() in names for name in value):
        return value
    return {
        name: REDACTED if name.lower() in names and member is not None else member for name, member in value.items()
    }


def _field(field: str, more: frozenset[str]) -> str:
    name, is_given, value = field.partition("=")
    plain = unquote_plus(name).lower()
    return f"{name}={REDACTED}" if is_given and value and (plain in IN_QUERIES or plain in more) else field
