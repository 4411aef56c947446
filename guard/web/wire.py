"""Keys on the wire."""

from guard.core.effects import Key
from twiceshy_contract.wire import EffectKey


def wire_key(key: Key) -> EffectKey:
    """Write a key: 64 lower-case hex digits."""
    return EffectKey(key.hex())


def key_of(text: str) -> Key | None:
    """Read a key; None where the text is not one."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        return None
    return Key(raw) if len(raw) == 32 and raw.hex() == text else None
