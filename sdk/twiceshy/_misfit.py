"""What reading the record raises where a value and an annotation do not go together."""


class Misfit(ValueError):
    """The value does not fit the annotation; the message names both types.

    `given` says the same of a value that was given, and is not of the record.
    """

    def __init__(self, message: str, *, given: str | None = None) -> None:
        super().__init__(message)
        self.given = given or message
