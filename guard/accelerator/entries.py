"""Entries: a final effect as Redis keeps it, and what must be true of one before anybody believes it.

An entry is sealed under its tenant's secret together with tenant, epoch and key. So none that another wrote, that was
changed, that stands under another name, or that is of an epoch that has ended is opened: what the seal does not prove
is not even decompressed. How long an entry may be believed is not said in it; whoever opens it judges by the time at
which its effect ended.
"""

import hmac
import struct
from typing import Final, Literal

import msgspec
import zstandard

from guard.accelerator.keyring import Secrets
from guard.core.effects import Effect, Key, TenantId

LARGEST: Final = 256 * 2**10
"""Bytes of an effect, as it is written before it is compressed; what is larger is not kept."""
_COMPRESSED_FROM: Final = 1024
_LEVEL: Final = 1
_VERSION: Final = 1
_HEAD: Final = struct.Struct(">BB32s")
MOST_BYTES: Final = _HEAD.size + LARGEST
"""Of an entry."""

_PLAIN, _ZSTD = 0, 1
_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(Effect)
_compressor: Final = zstandard.ZstdCompressor(level=_LEVEL)
_decompressor: Final = zstandard.ZstdDecompressor()

Doubt = Literal["oversized", "unsealed", "unreadable", "misplaced"]


class Distrusted(msgspec.Struct, frozen=True):
    """Why an entry is not believed."""

    why: Doubt


def written(secrets: Secrets, epoch: int, effect: Effect) -> bytes | None:
    """Return the entry of an effect; None for one that is too large."""
    body = _encoder.encode(effect)
    if len(body) > LARGEST:
        return None
    form = _PLAIN
    if len(body) >= _COMPRESSED_FROM:
        compressed = _compressor.compress(body)
        if len(compressed) < len(body):
            form, body = _ZSTD, compressed
    place = _place(effect.intent.tenant, epoch, effect.intent.key)
    return _HEAD.pack(_VERSION, form, secrets.seal(_sealed(form, place, body))) + body


def opened(secrets: Secrets, epoch: int, tenant: TenantId, key: Key, entry: bytes) -> Effect | Distrusted:
    """Return the effect of an entry that was found where that of the key belongs, if the seal proves it."""
    if len(entry) > MOST_BYTES:
        return Distrusted("oversized")
    if len(entry) < _HEAD.size:
        return Distrusted("unsealed")
    version, form, seal = _HEAD.unpack_from(entry)
    body = entry[_HEAD.size :]
    if version != _VERSION or not hmac.compare_digest(
        seal, secrets.seal(_sealed(form, _place(tenant, epoch, key), body))
    ):
        return Distrusted("unsealed")
    effect = _read(form, body)
    if effect is None:
        return Distrusted("unreadable")
    if effect.intent.key != key or effect.intent.tenant != tenant:
        return Distrusted("misplaced")
    return effect


def _sealed(form: int, place: bytes, body: bytes) -> bytes:
    return b"twiceshy entry %d %d:" % (_VERSION, form) + place + body


def _place(tenant: TenantId, epoch: int, key: Key) -> bytes:
    """Return where and when an entry belongs; all of one length but the key, which comes last and has its length."""
    return struct.pack(">QQI", tenant, epoch, len(key)) + key


def _read(form: int, body: bytes) -> Effect | None:
    """Read a body that was sealed here; another version of this code may have written another form."""
    try:
        if form == _ZSTD:
            if not 0 <= zstandard.frame_content_size(body) <= LARGEST:
                return None
            body = _decompressor.decompress(body, max_output_size=LARGEST)
        return _decoder.decode(body)
    except (zstandard.ZstdError, msgspec.DecodeError):
        return None
