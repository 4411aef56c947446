"""Choose the transport for a service: pyreqwest, or the standard library where pyreqwest does not load."""

from twiceshy._transports.base import Transport
from twiceshy._transports.plain import PlainTransport


def connect(url: str, token: str | None) -> Transport:
    """Return a transport to the service at `url`. Nothing is sent yet."""
    try:
        from twiceshy._transports.http import HttpTransport
    except ImportError:
        return PlainTransport(url, token)
    return HttpTransport(url, token)
