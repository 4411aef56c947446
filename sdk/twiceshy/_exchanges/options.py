"""What may be said of how HTTP exchanges are recorded."""

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import msgspec

MODEL_PATHS: Final = ("/chat/completions", "/completions", "/responses", "/messages", "/embeddings")
"""How the path of a call to a model ends."""


def is_model_call(method: str, url: str) -> bool:
    """Say whether a request calls a model, by the end of its path."""
    return method == "POST" and urlsplit(url).path.rstrip("/").endswith(MODEL_PATHS)


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How exchanges are recorded.

    `is_model_call(method, url)` tells calls of models, which are recorded under the model's name, from all others.
    `secrets` are more names, in lower case, of fields in queries, forms and JSON bodies whose values are left out.
    """

    is_model_call: Callable[[str, str], bool] = is_model_call
    secrets: frozenset[str] = frozenset()


DEFAULT: Final = HttpOptions()
