"""Python's garbage collector in a process that serves or relays for long."""

import gc


def spare_the_collector() -> None:
    """Let it pass over what lives as long as the process, and look for cycles less often.

    A request and a message leave none behind; by default every 700 objects are a reason to look.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
