"""What pydantic has declared, pydantic reads: models, its dataclasses, its types, what `Annotated` says with it.

Pydantic is no dependency. Whoever annotates with it has imported it; nothing here imports it first.
"""

import dataclasses
import inspect
import sys
from types import ModuleType
from typing import Annotated, Final, get_args, get_origin

from twiceshy._misfit import Misfit

_MOST_PLACES: Final = 4


def pydantic() -> ModuleType | None:
    """Return pydantic where somebody has imported it."""
    return sys.modules.get("pydantic")


def is_for_pydantic(annotation: object) -> bool:
    """Tell whether an annotation names, at any depth, what only pydantic can read."""
    if pydantic() is None:
        return False
    if get_origin(annotation) is Annotated:
        member, *notes = get_args(annotation)
        return any(_is_note(note) for note in notes) or is_for_pydantic(member)
    return _is_declared(annotation) or any(is_for_pydantic(each) for each in get_args(annotation))


def from_pydantic(plain: object, annotation: object) -> object:
    """Read a value by field names or aliases. Raises Misfit; TypeError where pydantic does not know a type in it."""
    library = pydantic()
    if library is None:
        raise TypeError("pydantic is not imported")
    try:
        adapter = library.TypeAdapter(annotation)
    except library.PydanticUserError as error:
        raise TypeError(_first_line(error)) from error
    try:
        return adapter.validate_python(plain, by_alias=True, by_name=True, strict=False)
    except library.ValidationError as error:
        places = [_place(each) for each in error.errors(include_url=False)]
        more = f"; and {len(places) - _MOST_PLACES} more" if len(places) > _MOST_PLACES else ""
        raise Misfit("; ".join(places[:_MOST_PLACES]) + more) from error


def _is_declared(kind: object) -> bool:
    if not isinstance(kind, type):
        return False
    if dataclasses.is_dataclass(kind):
        return hasattr(kind, "__pydantic_validator__") and _takes_all_its_fields(kind)
    return hasattr(kind, "__get_pydantic_core_schema__")


def _takes_all_its_fields(kind: type) -> bool:
    """Tell whether a dataclass is made from its fields alone: others have members that pydantic would make anew."""
    fields = dataclasses.fields(kind)
    return len(inspect.signature(kind).parameters) == len(fields) and all(field.init for field in fields)


def _is_note(note: object) -> bool:
    kind = note if isinstance(note, type) else type(note)
    return kind.__module__.partition(".")[0] == "pydantic" or hasattr(note, "__get_pydantic_core_schema__")


def _place(error: dict[str, object]) -> str:
    steps = error["loc"]
    place = ".".join(str(step) for step in steps) if isinstance(steps, tuple) else ""
    return f"{error['msg']} - at `{place}`" if place else str(error["msg"])


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
