"""The small integers that stand for words in the database; none ever changes its meaning."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, TypeVar

from guard.core.effects import Report
from twiceshy_contract.destinations import BreakerState, DestinationState
from twiceshy_contract.events import EventKind, OutcomeKind
from twiceshy_contract.names import KeyRule, PublicState
from twiceshy_contract.outbox import MessageState, TryResult
from twiceshy_contract.runs import RunState
from twiceshy_contract.sagas import SagaState, StepState

_WordT = TypeVar("_WordT", bound=str)

STATE_CODES: Final[Mapping[PublicState, int]] = MappingProxyType(
    {"pending": 1, "executing": 2, "succeeded": 3, "in_doubt": 4, "failed": 5}
)
REPORT_CODES: Final[Mapping[Report, int]] = MappingProxyType(
    {"none": 0, "succeeded": 1, "not_applied": 2, "rejected": 3, "unknown": 4, "released": 5}
)
RULE_CODES: Final[Mapping[KeyRule, int]] = MappingProxyType({"once": 1, "step": 2, "business_key": 3})
RUN_STATE_CODES: Final[Mapping[RunState, int]] = MappingProxyType(
    {"open": 1, "finished": 2, "failed": 3, "cancelled": 4}
)

SAGA_STATE_CODES: Final[Mapping[SagaState, int]] = MappingProxyType(
    {"running": 1, "completed": 2, "compensating": 3, "compensated": 4, "stuck": 5}
)
STEP_STATE_CODES: Final[Mapping[StepState, int]] = MappingProxyType(
    {"enlisted": 1, "compensated": 2, "uncompensated": 3, "skipped": 4, "passed_over": 5}
)
EVENT_KIND_CODES: Final[Mapping[EventKind, int]] = MappingProxyType(
    {
        "llm_call": 1,
        "tool_call": 2,
        "time": 3,
        "random": 4,
        "uuid": 5,
        "sleep": 6,
        "child_run": 7,
        "human": 8,
        "custom": 9,
    }
)
OUTCOME_CODES: Final[Mapping[OutcomeKind, int]] = MappingProxyType(
    {"result": 1, "error": 2, "unknown": 3, "cancelled": 4, "expired": 5}
)

MESSAGE_STATE_CODES: Final[Mapping[MessageState, int]] = MappingProxyType(
    {
        "pending": 1,
        "claimed": 2,
        "sending": 3,
        "dead": 4,
        "unknown": 5,
        "parked": 6,
        "delivered": 7,
        "cancelled": 8,
        "withdrawn": 9,
    }
)
TRY_CODES: Final[Mapping[TryResult, int]] = MappingProxyType(
    {"retryable": 1, "permanent": 2, "unknown": 3, "expired": 4}
)
DESTINATION_STATE_CODES: Final[Mapping[DestinationState, int]] = MappingProxyType(
    {"active": 1, "paused": 2, "disabled": 3, "removed": 4}
)
BREAKER_CODES: Final[Mapping[BreakerState, int]] = MappingProxyType({"closed": 1, "open": 2, "half_open": 3})


def _words(codes: Mapping[_WordT, int]) -> Mapping[int, _WordT]:
    return MappingProxyType({code: word for word, code in codes.items()})


STATES: Final = _words(STATE_CODES)
REPORTS: Final = _words(REPORT_CODES)
RULES: Final = _words(RULE_CODES)
RUN_STATES: Final = _words(RUN_STATE_CODES)
SAGA_STATES: Final = _words(SAGA_STATE_CODES)
STEP_STATES: Final = _words(STEP_STATE_CODES)
EVENT_KINDS: Final = _words(EVENT_KIND_CODES)
OUTCOMES: Final = _words(OUTCOME_CODES)
MESSAGE_STATES: Final = _words(MESSAGE_STATE_CODES)
TRIES: Final = _words(TRY_CODES)
DESTINATION_STATES: Final = _words(DESTINATION_STATE_CODES)
BREAKERS: Final = _words(BREAKER_CODES)

ONCE: Final = RULE_CODES["once"]
PENDING: Final = STATE_CODES["pending"]
EXECUTING: Final = STATE_CODES["executing"]
SUCCEEDED: Final = STATE_CODES["succeeded"]
FAILED: Final = STATE_CODES["failed"]
IN_DOUBT: Final = STATE_CODES["in_doubt"]
UNREPORTED: Final = REPORT_CODES["none"]
REPORTED_SUCCESS: Final = REPORT_CODES["succeeded"]
RUN_OPEN: Final = RUN_STATE_CODES["open"]
WAITING: Final = MESSAGE_STATE_CODES["pending"]
CLAIMED: Final = MESSAGE_STATE_CODES["claimed"]
SENDING: Final = MESSAGE_STATE_CODES["sending"]
DEAD: Final = MESSAGE_STATE_CODES["dead"]
UNKNOWN: Final = MESSAGE_STATE_CODES["unknown"]
PARKED: Final = MESSAGE_STATE_CODES["parked"]
