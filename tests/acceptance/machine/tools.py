"""The tools of an example: each class with and without a provider's window, one that may repeat, one without roles."""

from tests.acceptance.machine.oracle import Tool


def tools(name: str) -> list[Tool]:
    """Return the tools of the example of this name."""
    return [
        Tool(name=f"pay-{name}", class_="side_effect", attempts=2),
        Tool(name=f"charge-{name}", class_="side_effect", window=130),
        Tool(name=f"set-{name}", class_="idempotent", attempts=2, backoff=8),
        Tool(name=f"put-{name}", class_="idempotent", window=130, attempts=1),
        Tool(name=f"tell-{name}", class_="side_effect", may_repeat=True),
        Tool(name=f"ship-{name}", class_="side_effect", has_roles=False),
    ]


def declaration(tool: Tool) -> dict[str, object]:
    """Return a tool's declaration as the service takes it."""
    declared: dict[str, object] = {
        "class": tool.class_,
        "lease_seconds": tool.lease,
        "attempts": tool.attempts,
        "backoff_seconds": tool.backoff,
    }
    declared |= {"arguments": {"content": ["/note"], "ignored": ["/why"]}} if tool.has_roles else {}
    declared |= {} if tool.window is None else {"provider_window_seconds": tool.window}
    return declared | ({"repeat": "allow"} if tool.may_repeat else {})
