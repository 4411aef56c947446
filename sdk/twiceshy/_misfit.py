"""What reading the record raises where a value and an annotation do not go together."""


class Misfit(ValueError):
    """The value does not fit the annotation; the message names both types."""
