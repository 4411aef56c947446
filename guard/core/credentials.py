"""The credential of a fork: a token that proves nothing but which run its bearer may drive.

It is made of the run's id and the tenant's salt, so that the same fork has the same credential, and no other can be
made without the salt.
"""

import hashlib
import hmac
import re
from typing import Final
from uuid import UUID

from guard.core.effects import RunId
from twiceshy_contract.forks import CREDENTIAL

_FORM: Final = re.compile(r"fork\.([0-9a-f]{32})\.([0-9a-f]{64})", re.ASCII)


def credential_of(salt: bytes, run: RunId) -> str:
    """Return the credential of a fork."""
    proof = hmac.new(salt, b"fork" + run.bytes, hashlib.sha256)
    return f"{CREDENTIAL}{run.hex}.{proof.hexdigest()}"


def run_of_credential(salt: bytes, text: str) -> RunId | None:
    """Return the fork that a credential drives; None for one that was not made here. It takes as long for any."""
    form = _FORM.fullmatch(text)
    if form is None:
        return None
    run = RunId(UUID(hex=form[1]))
    return run if hmac.compare_digest(credential_of(salt, run), text) else None
