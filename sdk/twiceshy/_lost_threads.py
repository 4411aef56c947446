"""Calls in a thread that lost the run around it: what runs there would be missing in that run's log, without a word."""

import logging
import threading

from twiceshy._calls import ToolCall, beside
from twiceshy._environment import Environment
from twiceshy.exceptions import NoRun

_log = logging.getLogger("twiceshy")


def heed_thread(environment: Environment, call: ToolCall) -> None:
    """Refuse a call without a run in a thread of its own while a run is recorded here. Raises NoRun.

    One that names a business key may well be meant to be of no run: of such a tool it is said once.
    """
    if call.run is not None or threading.current_thread() is threading.main_thread():
        return
    recorded = environment.recorder.names
    if not recorded:
        return
    name = call.spec.name
    if call.keys.business_key is None:
        raise NoRun(f"{name} did not run: this thread does not see the run around it.{beside(recorded)}")
    if name not in environment.told_of_threads:
        environment.told_of_threads.add(name)
        _log.warning("%s is called in a thread that sees no run around it.%s", name, beside(recorded))
