"""Deliveries: with its begin, an agent says which outcomes of its run it knows by now."""

from guard.core.effects import Key
from guard.ports.store import EffectStore
from guard.service.naming import NamedCall
from twiceshy_contract.refusals import Refusal

_KEY_BYTES = 32


class Deliveries:
    """An early gate that lets every call pass: it writes down what is known before anything is decided by it.

    Keys of other runs, unknown ones and those of effects that are not over are passed over.
    """

    def __init__(self, store: EffectStore) -> None:
        self._store = store

    async def __call__(self, call: NamedCall) -> NamedCall:
        """Mark the outcomes. Raises Refusal for what is no key, StoreUnavailable."""
        keys = [_key(text, place) for place, text in enumerate(call.request.delivered)]
        if keys and call.run_id is not None:
            await self._store.deliver(call.tenant, call.run_id, keys)
        return call


def _key(text: str, place: int) -> Key:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES or key.hex() != text:
        raise Refusal("a key is 64 lower-case hex digits", ("delivered", place))
    return Key(key)
