"""What the caller sees of a tool that raised: it follows the state in which the service's answer leaves the effect."""

import msgspec

from twiceshy._answers import Effect
from twiceshy._ask import Answered
from twiceshy._classify import Judgement
from twiceshy._delivery import Delivery, Spooled
from twiceshy._doubt import explain, in_doubt
from twiceshy._effect import CurrentEffect
from twiceshy._options import ToolSpec
from twiceshy._replies import Unanswered
from twiceshy._results import returns_nothing
from twiceshy._said import ended, note, said
from twiceshy._steps import Raised, Returned
from twiceshy.exceptions import LeaseLost, OutcomeError, OutcomeNotDelivered, Superseded
from twiceshy_contract.problems import Problem


class Seen(msgspec.Struct, frozen=True):
    """How a tool that raised was judged, what became of the report, and what its probe has said since."""

    spec: ToolSpec
    effect: CurrentEffect
    judgement: Judgement
    delivery: Delivery
    error: BaseException
    probed: str | None = None

    @property
    def may_be_tried_after(self) -> float | None:
        """Seconds until the tool may be tried again, where the effect is open to that and the tool's word allows it.

        A doubtful effect is, where its provider answers a repeated key from its record. None: it may not.
        """
        if not issubclass(type(self.error), Exception) or is_lease_lost(self.error, self.effect):
            return None
        if not isinstance(self.delivery, Answered) or self.judgement not in ("not_applied", "unknown"):
            return None
        rules, value = self.spec.rules, self.delivery.value
        if value.state == "in_doubt":
            has_window = rules.provider_window_seconds is not None and self.effect.inner_doubt is None
            return rules.backoff_seconds if has_window else None
        is_harmless = self.judgement == "not_applied" or rules.effect == "idempotent"
        return value.retry_after_seconds if value.state == "pending" and is_harmless else None

    @property
    def is_doubtful(self) -> bool:
        """Whether the effect is in doubt: the service says so, or nobody could be told of a doubt."""
        if isinstance(self.delivery, Answered):
            return self.delivery.value.state == "in_doubt"
        is_unknown = self.judgement == "unknown" and self.spec.rules.effect == "side_effect"
        return is_unknown and not self.is_superseded

    @property
    def is_superseded(self) -> bool:
        """Whether somebody else has settled the effect."""
        return isinstance(self.delivery, Problem) and self.delivery.code == "superseded"

    def by_caller(self) -> BaseException:
        """Return what the caller is to see: the tool's own exception, or what chains it."""
        error = self.error
        if not issubclass(type(error), Exception):
            return self._passed()
        if self.is_doubtful:
            message = _doubtful(self.effect, error)
            began_in = self.effect.inner_doubt
            doubt = in_doubt(self.effect.reference, message, self.spec.rules.on_doubt, began_in=began_in)
            if self.probed is not None:
                note(doubt, f"twiceshy: {ended(self.probed)}")
            if isinstance(self.delivery, Spooled):
                note(doubt, self._waiting(self.delivery))
            return _caused(doubt, error)
        match self.delivery:
            case Answered(value):
                note(error, f"twiceshy: {self._note(value)} The effect is {self.effect.key}.")
                return error
            case Spooled():
                note(error, self._waiting(self.delivery))
                return error
            case Problem() if self.is_superseded and is_lease_lost(error, self.effect):
                note(error, "twiceshy: somebody has settled the effect meanwhile; call again to read the record.")
                return error
            case Problem() | Unanswered():
                then = "be in doubt" if self.spec.rules.effect == "side_effect" else "be open to another try"
                return _caused(undelivered(self.delivery, self.effect, Raised(error), then), error)

    def _passed(self) -> BaseException:
        """Let an interruption pass, or an inner effect's doubt; it says what it left behind."""
        effect, error = self.effect, self.error
        about = f"effect {effect.key} of {effect.reference.tool}"
        match self.delivery:
            case Answered():
                note(error, f"twiceshy: {about} was reported as {self.judgement}.")
            case Spooled():
                note(error, self._waiting(self.delivery))
            case Problem(detail=reason) | Unanswered(reason=reason):
                note(error, f"twiceshy: {about} could not be reported as {self.judgement} ({reason}).")
        if self.is_doubtful and effect.inner_doubt is not None:
            explain(error, effect.reference, effect.inner_doubt)
        return error

    def _waiting(self, spooled: Spooled) -> str:
        return (
            f"twiceshy: the service could not be told that the outcome is {self.judgement} ({spooled.reason}). The "
            f"report waits in {spooled.path} and is sent until the service takes it. The effect is {self.effect.key}."
        )

    def _note(self, answer: Effect) -> str:
        match answer.state:
            case "pending":
                harmless = "whether it was applied is not known, and it may be repeated harmlessly"
                what = "nothing was applied" if self.judgement == "not_applied" else harmless
                seconds = answer.retry_after_seconds
                when = f" not before {seconds:.3g} seconds from now" if seconds else ""
                return f"{what}; the same call will try again{when}."
            case "failed":
                return "it was rejected for good; the same call will raise this again."
            case "succeeded" if self.judgement == "succeeded":
                replay = "returns None" if returns_nothing(self.spec) else "raises ResultNotKept"
                return f"the tool had sent before it raised, so it counts as done; a replay {replay}."
            case "succeeded":
                return "the record says that it happened; the same call will return what is recorded."
            case "executing" | "in_doubt":  # doubt has been raised before it comes to a note
                return "another attempt is under way; the same call will wait for it."


def is_lease_lost(error: BaseException, effect: CurrentEffect) -> bool:
    """Tell whether an exception says that this very effect lost its lease."""
    return issubclass(type(error), LeaseLost) and vars(error).get("effect") == effect.reference


def _doubtful(effect: CurrentEffect, error: BaseException) -> str:
    return (
        f"Nobody knows whether {effect.reference.tool} happened: it raised {ended(said(error))} Do not retry; find out "
        f"at the provider and settle effect {effect.key}."
    )


def _caused(new: BaseException, cause: BaseException) -> BaseException:
    new.__cause__ = cause
    return new


def undelivered(
    delivery: Problem | Unanswered, effect: CurrentEffect, outcome: Returned | Raised, then: str = "be in doubt"
) -> OutcomeError:
    """Say that the record does not hold what the tool did, and what to save."""
    reference = effect.reference
    has_result = isinstance(outcome, Returned)
    result = outcome.value if isinstance(outcome, Returned) else None
    did = "ran and returned" if has_result else "ran and raised"
    kind: type[OutcomeError]
    if isinstance(delivery, Problem) and delivery.code == "superseded":
        kind, why = Superseded, "another attempt has settled the effect meanwhile. Call again to read the record"
    elif isinstance(delivery, Problem) and delivery.code == "lease-lost":
        kind, why = LeaseLost, f"the service says: {delivery.detail} Do not act again; call again and obey the answer"
    else:
        reason = delivery.detail if isinstance(delivery, Problem) else delivery.reason
        kind, why = (
            OutcomeNotDelivered,
            (
                f"the service could not be told ({reason}). Save this error's `result`, then settle the effect with "
                f"`twiceshy effects resolve {reference.key} --as applied --result '<JSON>' --reason '...'`"
                if has_result
                else f"the service could not be told ({reason}). The effect will {then} when its lease ends; "
                f"`twiceshy effects show {reference.key}` says how it stands"
            ),
        )
    return kind(
        f"{reference.tool} {did}, but {why}. Effect {reference.key}, attempt {reference.attempt}, fence "
        f"{reference.fence}.",
        effect=reference,
        result=result,
        has_result=has_result,
    )
