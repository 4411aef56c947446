"""The promises of the guard, kept by what it answered alone: no oracle, no table of states.

Even where the oracle and the service err together, these must hold.
"""

import json
from dataclasses import dataclass, field


class Broken(AssertionError):
    """The service broke a promise."""


@dataclass(kw_only=True)
class Account:
    """What was answered about one key."""

    fence: int = 0
    holder: str | None = None
    deadline: int = 0
    in_question: set[int] = field(default_factory=set)
    """Fences of attempts that may have acted, and of which nobody has said that they did not."""
    downstream_key: str = ""
    spent: set[str] = field(default_factory=set)
    """Downstream keys under which nothing may be sent any more."""
    outcome: str | None = None


class Ledger:
    """One account a key."""

    def __init__(self) -> None:
        self._accounts: dict[str, Account] = {}

    def account(self, key: str) -> Account:
        """Return the account of a key."""
        return self._accounts.setdefault(key, Account())

    def seen(self, key: str, fence: int, outcome: object) -> None:
        """An answer showed a fence and maybe an outcome: fences grow, outcomes stay."""
        account = self.account(key)
        if fence < account.fence:
            raise Broken(f"the fence fell from {account.fence} to {fence}")
        account.fence = fence
        text = None if outcome is None else json.dumps(outcome, sort_keys=True)
        if account.outcome is not None and text != account.outcome:
            raise Broken(f"the outcome changed from {account.outcome} to {text}")
        account.outcome = text

    def granted(self, body: dict[str, object], token: str, deadline: int, now: int, *, is_harmless: bool) -> None:
        """A lease was given: to nobody else at the same time, and not twice while the first may have acted."""
        account = self.account(str(body["key"]))
        fence, downstream_key = int(str(body["fence"])), str(body["downstream_key"])
        if account.outcome is not None:
            raise Broken("a lease was given for an effect that is over")
        if account.holder not in (None, token) and now < account.deadline:
            raise Broken(f"{token} got a lease while {account.holder} holds one until {account.deadline}")
        if fence in account.in_question and account.holder in (None, token):
            if downstream_key != account.downstream_key:
                raise Broken("one grant has two downstream keys")
        else:
            self._granted_anew(account, fence, downstream_key, is_harmless=is_harmless)
        account.fence, account.downstream_key = fence, downstream_key
        account.holder, account.deadline = token, deadline
        account.in_question.add(fence)

    @staticmethod
    def _granted_anew(account: Account, fence: int, downstream_key: str, *, is_harmless: bool) -> None:
        if fence <= account.fence:
            raise Broken(f"a new lease has the fence {fence} after {account.fence}")
        if downstream_key in account.spent:
            raise Broken("a downstream key came back under which nothing may be sent any more")
        if account.in_question and not is_harmless:
            raise Broken(f"executed again while the attempts {account.in_question} may have acted")
        if account.in_question and downstream_key != account.downstream_key:
            raise Broken("the downstream key changed while an earlier attempt may have acted under it")

    def renewed(self, key: str, token: str, deadline: int) -> None:
        """The holder goes on."""
        account = self.account(key)
        account.holder, account.deadline = token, deadline

    def let_go(self, key: str, token: str) -> None:
        """The attempt reported: it holds nothing any more."""
        account = self.account(key)
        account.holder = None if account.holder == token else account.holder

    def cleared(self, key: str, fences: set[int], *, is_spent: bool) -> None:
        """It is known of these attempts that they did not act; `is_spent` where they may have asked the provider."""
        account = self.account(key)
        is_news = bool(account.in_question & fences)
        account.in_question -= fences
        if is_spent and is_news and not account.in_question:
            account.spent.add(account.downstream_key)
