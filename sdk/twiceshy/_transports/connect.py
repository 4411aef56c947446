"""Choose the transport for a URL: into this process for a database, else over HTTP."""

from twiceshy._settings import is_database
from twiceshy._transports.base import Transport
from twiceshy._transports.coalescing import CoalescingTransport
from twiceshy._transports.embedded import EmbeddedTransport
from twiceshy._transports.plain import PlainTransport


def connect(url: str, token: str | None) -> Transport:
    """Return a transport to the service at `url`, or to one in this process over the database at `url`.

    Nothing is sent or opened yet. Raises SetupError where a database is named and the server is not installed.
    """
    if is_database(url):
        return EmbeddedTransport(url)
    return _over_http(url, token)


def _over_http(url: str, token: str | None) -> Transport:
    """Speak HTTP by pyreqwest, in batches where calls wait, or by the standard library where that does not load."""
    try:
        from twiceshy._transports.http import HttpTransport
    except ImportError:
        return PlainTransport(url, token)
    return CoalescingTransport(HttpTransport(url, token))
