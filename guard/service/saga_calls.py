"""Which begins belong to a saga's compensations, and which may not look like one."""

from guard.core.compensations import is_reserved, step_name
from twiceshy_contract.effects import BeginRequest
from twiceshy_contract.refusals import Refusal


def check_compensation(request: BeginRequest) -> None:
    """Refuse a compensation outside of its saga, and any other call under a name that belongs to one.

    Raises Refusal with the place in the request.
    """
    if request.compensates is None:
        if is_reserved(str(request.step)):
            raise Refusal("a step of this name is a compensation: say what it compensates", ("compensates",))
        return
    if request.saga is None:
        raise Refusal("a compensation belongs to a saga: name it", ("saga",))
    if request.step != step_name(request.compensates):
        raise Refusal(f"the step of this compensation is {step_name(request.compensates)!r}", ("step",))
