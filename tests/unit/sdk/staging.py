"""Answers of a service to a staging, written by hand."""

from uuid import UUID

from tests.unit.sdk.scripted import Answer, about, answered

FIRST = UUID(int=1)
SECOND = UUID(int=2)


def stages(*messages: UUID) -> Answer:
    """Stage: one id for every row."""
    ids = [str(message) for message in messages]
    return answered(
        201,
        about(decision="staged", state="succeeded", tool="send", messages=ids, committed_at="2026-10-12T14:00:01Z"),
    )


def asks_to_render(arguments: dict[str, object]) -> Answer:
    """Put a person's arguments in the place of the call's."""
    return answered(200, about(decision="render", state="pending", tool="send", arguments=arguments))


def awaits() -> Answer:
    """Let a person decide first."""
    approval = "00000000-0000-4000-8000-00000000000a"
    return answered(
        202,
        about(
            decision="await_approval", state="pending", tool="send", approval=approval, summary="send(...)", quorum=1,
            expires_at=None,
        ),
    )  # fmt: skip
