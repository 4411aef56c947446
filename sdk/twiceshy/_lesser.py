"""Reports without what the service refused of them: it is told less, and never something else."""

import hashlib

import msgspec

from twiceshy._restore import OPAQUE
from twiceshy._said import clean
from twiceshy._spool_record import Verb
from twiceshy_contract.effects import CommitRequest, FailRequest, Opaque


def lesser(verb: Verb, body: bytes, reason: str) -> bytes | None:
    """Return a commit without its result, or a failure without its data. None where there is nothing to leave out."""
    return without_result(body, reason) if verb == "commit" else without_data(body)


def without_result(body: bytes, reason: str) -> bytes | None:
    """Return a commit with a digest where its result was."""
    commit = msgspec.json.decode(body, type=CommitRequest)
    if isinstance(commit.result, dict) and OPAQUE in commit.result:
        return None
    result = msgspec.json.encode(commit.result)
    digest = hashlib.sha256(result).hexdigest()
    opaque = Opaque(type="not known", size=len(result), sha256=digest, reason=clean(reason))
    kept = {OPAQUE: msgspec.to_builtins(opaque)}
    return msgspec.json.encode(msgspec.structs.replace(commit, result=kept))


def without_data(body: bytes) -> bytes | None:
    """Return a failure without the data of its error."""
    failure = msgspec.json.decode(body, type=FailRequest)
    if failure.error.data is None:
        return None
    error = msgspec.structs.replace(failure.error, data=None)
    return msgspec.json.encode(msgspec.structs.replace(failure, error=error))
