"""Where the service's randomness comes from: retry times that must not march in step."""

from collections.abc import Callable

Jitter = Callable[[], float]
"""Returns 0 ≤ j < 1."""
