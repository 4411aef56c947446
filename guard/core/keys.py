"""Keys: what makes two calls the same intent. Made here, never by a model or a client.

A slot is a SHA-256 over length-prefixed fields, so that no two calls collide by concatenation. A key is six
bytes of the run's start and 26 of a hash over slot, occurrence and generation: keys of one time lie together
in the index. Effects that have no run in their name take a zero prefix.
"""

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
    scope = b"tenant" if run is None or is_business_key else b"run"
    run_bytes = b"" if run is None or is_business_key else run.bytes
    tool_bytes = b"" if is_business_key else tool.encode()
    return _digest(SCHEME, str(tenant).encode(), scope, run_bytes, _MAIN_BRANCH, tool_bytes, rule.encode(), value)


def effect_key(named: bytes, run: RunId | None, occurrence: int, generation: int) -> Key:
    """Return the key of one instance of a slot; `run` is None where the slot is tenant-wide.

    `occurrence` is the caller's wish to do it once more; `generation` grows where a call was rejected and is
    tried with other arguments.
    """
    prefix = bytes(_PREFIX_BYTES) if run is None else run.bytes[:_PREFIX_BYTES]
    hashed = _digest(named, str(occurrence).encode(), str(generation).encode())
    return Key(prefix + hashed[: 32 - _PREFIX_BYTES])


def downstream_key(key: Key, epoch: int) -> str:
    """Return the idempotency key for the provider: 64 hex digits, the same for every attempt of one epoch."""
    return _digest(SCHEME, b"downstream", key, str(epoch).encode()).hex()


def _digest(*fields: bytes) -> bytes:
    return hashlib.sha256(b"".join([_LENGTHS(len(field)) + field for field in fields])).digest()
