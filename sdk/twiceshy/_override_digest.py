"""The digest of a fork's overrides, by which the same fork is known again."""

import hashlib
from collections.abc import Sequence
from typing import Any, cast

import msgspec

from twiceshy._encode import encode_result
from twiceshy._overrides import Override
from twiceshy._raised import written_error
from twiceshy.exceptions import SetupError
from twiceshy_contract.canonical import canonical
from twiceshy_contract.refusals import Refusal


def digest_of(overrides: Sequence[Override]) -> str | None:
    """Return what tells overrides from others, whatever their order; None for none. Raises SetupError."""
    if not overrides:
        return None
    digest = hashlib.sha256()
    for text in sorted(map(_written, overrides)):
        digest.update(b"%d:%s" % (len(text), text))
    return digest.hexdigest()


def _written(override: Override) -> bytes:
    which = [override.seq, override.name, override.occurrence]
    try:
        if override.error is msgspec.UNSET:
            return canonical([*which, "result", encode_result(override.result)])
        return canonical([*which, "error", _error(override.error)])
    except Refusal as refusal:
        raise SetupError(f"The override of {override} cannot be written as JSON: {refusal}.") from refusal


def _error(error: object) -> object:
    if isinstance(error, type) and issubclass(error, BaseException):
        error = error()
    if isinstance(error, BaseException):
        return msgspec.to_builtins(written_error(error))
    return cast("Any", encode_result(error))
