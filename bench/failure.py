"""What ends a bench without a figure."""


class BenchFailure(Exception):
    """The bench cannot measure what it was asked to; the message says what to do."""


class BadAnswer(BenchFailure):
    """A side answered something else than success: what would be measured is not a guarded call."""


class NotDurable(BenchFailure):
    """A database that may lose what it acknowledged: its figures mean nothing."""
