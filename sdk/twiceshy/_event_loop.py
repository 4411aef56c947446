"""Whether the code here runs on an event loop: what waits there may not block."""

import asyncio


def is_on_loop() -> bool:
    """Say whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
