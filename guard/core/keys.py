"""Keys: what makes two calls the same intent. Made here, never by a model or a client.

A slot is a SHA-256 over length-prefixed fields, so that no two calls collide by concatenation. A key is six
bytes of the run's start and 26 of a hash over slot, occurrence and generation: keys of one time lie together
in the index. Effects that have no run in their name take a zero prefix.
"""

import functools
import hashlib
import struct
from typing import Final

from guard.core.effects import Key, RunId, TenantId
from twiceshy_contract.names import KeyRule

SCHEME: Final = b"twiceshy/1"
_PREFIX_BYTES: Final = 6
_MAIN_BRANCH: Final = b""
_LENGTHS: Final = struct.Struct(">I").pack


def slot(tenant: TenantId, run: RunId | None, tool: str, rule: KeyRule, value: bytes) -> bytes:
    """Name an intent: 32 bytes. Without a run it is the tenant's.

    `value` is the identity digest (`once`), the caller's step or the business key. A business key is the
    tenant's, so neither run nor tool is part of its slot; the effect names its tool and is compared.
    """
    is_business_key = rule == "business_key"
    scoped = _scoped(tenant, None if is_business_key else run, "" if is_business_key else tool, rule)
    return hashlib.sha256(scoped + _fields(value)).digest()


def effect_key(named: bytes, run: RunId | None, occurrence: int, generation: int) -> Key:
    """Return the key of one instance of a slot; `run` is None where the slot is tenant-wide.

    `occurrence` is the caller's wish to do it once more; `generation` grows where a call was rejected and is
    tried with other arguments.
    """
    prefix = bytes(_PREFIX_BYTES) if run is None else run.bytes[:_PREFIX_BYTES]
    hashed = hashlib.sha256(_fields(named) + _counted(occurrence, generation)).digest()
    return Key(prefix + hashed[: 32 - _PREFIX_BYTES])


def downstream_key(key: Key, epoch: int) -> str:
    """Return the idempotency key for the provider: 64 hex digits, the same for every attempt of one epoch."""
    return hashlib.sha256(_fields(SCHEME, b"downstream", key, str(epoch).encode())).hexdigest()


@functools.lru_cache(maxsize=4096)
def _scoped(tenant: TenantId, run: RunId | None, tool: str, rule: KeyRule) -> bytes:
    """Return the fields that a run's calls of one tool share."""
    scope, run_bytes = (b"tenant", b"") if run is None else (b"run", run.bytes)
    return _fields(SCHEME, str(tenant).encode(), scope, run_bytes, _MAIN_BRANCH, tool.encode(), rule.encode())


@functools.lru_cache(maxsize=256)
def _counted(occurrence: int, generation: int) -> bytes:
    """Return the fields of an instance; most are the first."""
    return _fields(str(occurrence).encode(), str(generation).encode())


def _fields(*fields: bytes) -> bytes:
    return b"".join([_LENGTHS(len(field)) + field for field in fields])
