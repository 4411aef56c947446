"""Wire structs of what an operator may do to an effect that waits: end it, or let it be tried again."""

import msgspec

from twiceshy_contract.names import Person, Reason


class CancelRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An operator ends an effect that is pending: nothing was applied and nothing will be."""

    reason: Reason
    by: Person | None = None


class ReopenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An operator lets a pending effect be tried as often again as at first, and at once."""

    reason: Reason
