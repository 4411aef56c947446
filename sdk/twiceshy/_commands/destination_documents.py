"""Destinations in a file: what it declares, and every place that is wrong by its line."""

from collections.abc import Iterable

import click
import msgspec

from twiceshy._commands.documents import Document, read_document
from twiceshy_contract.destination_files import ROOT, Flaw, destinations_of
from twiceshy_contract.destinations import Destination


class Wanted(msgspec.Struct, frozen=True):
    """Destinations by name, in the order of the document in which they stand."""

    document: Document
    settings: dict[str, Destination]


def read_destinations(file: str) -> Wanted:
    """Read a file of destinations. Raises click.UsageError with every place that is wrong."""
    document = read_document(file, "FILE")
    declared = destinations_of(document.value)
    if declared.flaws:
        raise document.refused(declared.flaws)
    return Wanted(document, declared.settings)


def refused_by_service(wanted: Wanted, flaws: Iterable[tuple[str, Flaw]]) -> click.UsageError:
    """Return the error for settings that the service does not take, by name; each place is named by its line."""
    return wanted.document.refused([((ROOT, name, *place), message) for name, (place, message) in flaws])
