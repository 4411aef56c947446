"""Doubt as the caller meets it: nobody knows whether the effect happened, and these are the ways out."""

from twiceshy._effect import surrounding_effect
from twiceshy._said import note
from twiceshy.exceptions import EffectRef, OutcomeInDoubt, RunSuspended
from twiceshy_contract.names import OnDoubt


def in_doubt(
    reference: EffectRef, message: str, on_doubt: OnDoubt, *, began_in: EffectRef | None = None
) -> RunSuspended | OutcomeInDoubt:
    """Return the error that says so, with a note of the ways out. `began_in` names the inner effect behind it."""
    kind = RunSuspended if on_doubt == "suspend" else OutcomeInDoubt
    error = kind(message, effect=reference)
    explain(error, reference, began_in)
    return error


def explain(error: BaseException, reference: EffectRef, began_in: EffectRef | None) -> None:
    """Note on an error how the doubt about an effect is settled, and let the effect around it know of the doubt."""
    first = (
        ""
        if began_in is None
        else f"Effect {reference.key} of {reference.tool} is in doubt because the doubt began in the inner effect "
        f"{began_in.key} of {began_in.tool}: settle that first, then this.\n"
    )
    note(
        error,
        f"{first}Ways out: look at the provider whether it happened, then say so with\n"
        f"  twiceshy effects resolve {reference.key} --as applied --result '<JSON>' --reason '...'\n"
        f"  twiceshy effects resolve {reference.key} --as not_applied --reason '...'\n"
        "and call again; the JSON is what the tool would have returned. `twiceshy effects show` has all that is known "
        "of it.",
    )
    outer = surrounding_effect()
    if outer is not None and outer.inner_doubt is None:
        outer.inner_doubt = began_in or reference
