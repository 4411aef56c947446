"""What it means that a webhook had no answer: nothing was sent, or nobody knows.

Until a request is written to a connection nobody has any of it. From then on every failure is unknown, also that of a
kept connection: that the receiver closed it does not say what it had read.
"""

import ssl
from typing import Final

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from outbox_relay.dialling import Attempt
from outbox_relay.sinks.base import Permanent, Retryable, Unknown

_CHARACTERS: Final = 200
"""What is kept of an error's own words: they may quote what the receiver said."""


def unanswered(attempt: Attempt, error: Exception, seconds: float) -> Retryable | Permanent | Unknown:
    """Say what is known of a try that ended with an error before an answer's status was read."""
    if attempt.may_have_left:
        return Unknown(why=_after(error, seconds))
    refused = " ".join(f"{text}." for text in dict.fromkeys(attempt.refused))
    if refused and not attempt.dialled:
        return Permanent(why=f"blocked: {refused}")
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return Permanent(why=f"blocked: the request cannot be made, {_words(error)}. Nothing was sent.")
    besides = f" Besides, {refused}" if refused else ""
    return Retryable(why=f"{_before(error, seconds)} Nothing was sent.{besides}", is_unreachable=True)


def _after(error: Exception, seconds: float) -> str:
    match error:
        case TimeoutError():
            return f"The request left, and no answer came within {seconds:g} s."
        case HttpProcessingError():
            return f"The request left, and what came back is no HTTP ({_words(error)})."
        case aiohttp.ServerDisconnectedError():
            return "The request left, and the receiver closed the connection before it had answered."
        case _:
            return f"The request left, and the connection broke before an answer came ({_words(error)})."


def _before(error: Exception, seconds: float) -> str:
    match error:
        case TimeoutError():
            return f"No connection could be made within {seconds:g} s."
        case aiohttp.ClientConnectorDNSError():
            return f"The receiver's name is not known ({_words(error.os_error)})."
        case aiohttp.ClientConnectorCertificateError():
            return f"The receiver's certificate is not trusted ({_words(error.certificate_error)})."
        case aiohttp.ClientSSLError():
            return f"No encrypted connection could be made ({_words(error.os_error)})."
        case aiohttp.ClientConnectorError():
            return f"No connection could be made ({_words(error.os_error)})."
        case _:
            return f"No connection could be made ({_words(error)})."


def _words(error: Exception) -> str:
    """Return what an error says, without the URL: its path may be a secret."""
    said: str | None = None
    match error:
        case ssl.SSLCertVerificationError():
            said = error.verify_message
        case ssl.SSLError():
            said = error.reason
        case HttpProcessingError():
            said = error.message.strip().partition("\n")[0].rstrip(" :")  # what follows quotes the receiver
        case aiohttp.InvalidURL():
            said = f"its host {error.url} {error.description}"
        case aiohttp.ClientError():
            pass
        case OSError():
            said = error.strerror or str(error)
        case UnicodeError():
            said = "its host is no name"
        case _:
            pass
    return (said or type(error).__name__)[:_CHARACTERS]
