"""The credential of a fork: made of the run and the salt, and of nothing else."""

from uuid import UUID

from guard.core.credentials import credential_of, run_of_credential
from guard.core.effects import RunId

RUN = RunId(UUID(int=7))
SALT = b"s" * 32


def test_a_credential_names_its_run_and_is_known_again() -> None:
    credential = credential_of(SALT, RUN)
    assert credential.startswith("fork.00000000000000000000000000000007.")
    assert credential == credential_of(SALT, RUN)
    assert run_of_credential(SALT, credential) == RUN


def test_a_credential_of_another_salt_run_or_form_is_none() -> None:
    credential = credential_of(SALT, RUN)
    for forged in (
        credential_of(b"t" * 32, RUN),
        credential.replace("7.", "8."),
        credential.upper(),
        credential + "\n",
        credential[:-1],
        "",
    ):
        assert run_of_credential(SALT, forged) is None
