"""No secret is told: what a sink says of a try is kept, shown and logged, and a receiver may say to it what it heard.

A secret is blotted out as it is and as it travels: in base64, as in a login, and in the encoding of URLs.
"""

import base64
from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeVar
from urllib.parse import quote, quote_plus

import msgspec

from outbox_relay.secrets import ReadSecret
from outbox_relay.sinks.base import Delivered, Outgoing, Reached, Result, Sink

_HIDDEN: Final = "…"
_SHORTEST: Final = 4
"""What is shorter is no secret, and would blot out half of every sentence."""
_SHORTEST_WORD: Final = 8
_LONGEST: Final = 2000
_URL_SAFE: Final = str.maketrans("+/", "-_")
_LIVE: Final = 2
"""How many values of a name are remembered: a file may have been rotated since the message left."""
Said = TypeVar("Said", bound=Result | Reached)


class Discretion:
    """Reads secrets for one destination, and knows ever after what must not be told."""

    def __init__(self, read_secret: ReadSecret) -> None:
        self._read_secret = read_secret
        self._read: dict[str, tuple[str, ...]] = {}
        self._forms: dict[str, list[str]] = {}

    def read(self, name: str) -> str:
        """Return the secret of a name. Raises SinkRefused."""
        secret = self._read_secret(name)
        known = self._read.get(name, ())
        if secret not in known:
            self._read[name] = (secret, *known)[:_LIVE]
            self._forms = _forms({secret for live in self._read.values() for secret in live})
        return secret

    def without_secrets(self, text: str) -> str:
        """Return the first line of a text, without any secret or what a cut has left of one."""
        line = text.partition("\n")[0][:_LONGEST].rstrip("\r")
        for beginning, forms in self._forms.items():
            at = line.find(beginning)
            while at >= 0:
                end = at + max(_in_common(form, line[at:]) for form in forms)
                line = f"{line[:at]}{_HIDDEN}{line[end:]}"
                at = line.find(beginning, at)
        return line


class DiscreetSink:
    """A sink whose words hold no secret that it was given."""

    def __init__(self, open_sink: Callable[[ReadSecret], Sink], read_secret: ReadSecret) -> None:
        """Open a sink. Raises SinkRefused."""
        self._discretion = Discretion(read_secret)
        self._sink = open_sink(self._discretion.read)

    @property
    def capability(self) -> Literal["deduplicates", "sends_blindly"]:
        """Whether what may have arrived may be sent again."""
        return self._sink.capability

    async def send(self, outgoing: Outgoing) -> Result:
        """Send one message once."""
        result = await self._sink.send(outgoing)
        if isinstance(result, Delivered):
            said = self._discretion.without_secrets(result.receipt)
            return result if said == result.receipt else msgspec.structs.replace(result, receipt=said)
        said = self._discretion.without_secrets(result.why)
        return result if said == result.why else msgspec.structs.replace(result, why=said)

    async def check(self) -> Reached:
        """Say whether the destination can be reached."""
        seen = await self._sink.check()
        return Reached(ok=seen.ok, detail=self._discretion.without_secrets(seen.detail))

    async def close(self) -> None:
        """Give back all connections."""
        await self._sink.close()


def _in_common(form: str, text: str) -> int:
    """Return how many characters two texts begin with alike."""
    return next(
        (count for count, (one, other) in enumerate(zip(form, text, strict=False)) if one != other),
        min(len(form), len(text)),
    )


def _forms(secrets: set[str]) -> dict[str, list[str]]:
    """Return how secrets may stand in a text, by how they begin there, the longest first."""
    forms = {form for secret in secrets if len(secret) >= _SHORTEST for form in _forms_of(secret)}
    found: dict[str, list[str]] = {}
    for form in sorted(forms, key=lambda form: (-len(form), form)):
        found.setdefault(form[:_SHORTEST_WORD], []).append(form)
    return found


def _forms_of(secret: str) -> Iterator[str]:
    """Yield all of a secret, its long words, and each of them as it travels."""
    for part in (secret, *(word for word in secret.split() if len(word) >= _SHORTEST_WORD)):
        yield from (part, quote(part, safe=""), quote(part), quote_plus(part))
        yield from (repr(part)[1:-1], repr(part.encode())[2:-1])
        yield from _in_base64(part.encode())


def _in_base64(secret: bytes) -> Iterator[str]:
    """Yield what every base64 of a text that holds the secret shows, wherever in it the secret stands."""
    for before in range(3):
        whole = base64.b64encode(b"\0" * before + secret).decode().rstrip("=")
        sure = whole[-(-before * 8 // 6) : (before + len(secret)) * 8 // 6]
        if len(sure) >= _SHORTEST:
            yield from (sure, sure.translate(_URL_SAFE))
