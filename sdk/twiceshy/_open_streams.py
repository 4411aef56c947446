"""Why a run cannot be resumed whose code acted on a stream before that ended: its pieces were never an outcome."""

from msgspec.structs import replace

from twiceshy._divergence import Divergence
from twiceshy._recording import Recording
from twiceshy._replay_plan import Plan
from twiceshy._script import Order
from twiceshy_contract.events import Intent


def with_open_stream(divergence: Divergence, recording: Recording, order: Order, plan: Plan) -> Divergence:
    """Name, where a resumed run diverges, the model's answer that was open when the calls after it were made."""
    model = _asked_again(recording, order) if plan.mode == "resume" and divergence.actual is not None else None
    if model is None:
        return divergence
    why = (
        f"{model.name} (event {model.seq}) had not ended when the run was stopped, though calls were made after it. If "
        "it is a stream whose first pieces the code acted on, they are not kept: the model was asked again, and gave "
        "others. Such a run cannot be resumed; run the code under another name. Read a stream to its end, or close() "
        "it, before you act on what it says."
    )
    return replace(divergence, advice=f"{why} Otherwise: {divergence.advice}")


def _asked_again(recording: Recording, order: Order) -> Intent | None:
    """Return the newest call of a model without an outcome that another call came after."""
    is_followed = False
    for at in range(len(recording.events) - 1, -1, -1):
        event = recording.events[at]
        if not isinstance(event, Intent):
            continue
        if is_followed and event.kind == "llm_call" and order.delivery_of(event.seq) is None:
            return event
        is_followed = True
    return None
