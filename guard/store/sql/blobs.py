"""Texts that are kept by their content, compressed. A text's address is its digest under its tenant's salt.

So nobody learns by an address whether another tenant has the same text.
"""

import hashlib
import hmac
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import sqlalchemy as sa
import zstandard
from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql, sqlite

from guard.core.effects import Instant, TenantId
from guard.store.sql.recording_tables import blobs

_LEVEL: Final = 3
_MOST_NAMED: Final = 10_000
"""Addresses of one statement, where each is a parameter of its own; more than 32,766 are too many."""


class Packed(msgspec.Struct, frozen=True):
    """A text as it is stored, and its length before."""

    address: bytes
    size: int
    body: bytes


def address_of(salt: bytes, digest: str) -> bytes:
    """Return where a tenant keeps the text of a digest."""
    return hmac.digest(salt, bytes.fromhex(digest), hashlib.sha256)


def addresses_of(salt: bytes, digests: Iterable[str]) -> dict[str, bytes]:
    """Return where a tenant keeps the texts of digests."""
    return {digest: address_of(salt, digest) for digest in digests}


def packed(salt: bytes, texts: Mapping[str, bytes]) -> list[Packed]:
    """Compress texts."""
    if not texts:
        return []
    compress = zstandard.ZstdCompressor(level=_LEVEL).compress
    return [Packed(address_of(salt, digest), len(text), compress(text)) for digest, text in texts.items()]


def unpacked(bodies: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the texts that were compressed."""
    decompress = zstandard.ZstdDecompressor().decompress
    return {digest: decompress(body) for digest, body in bodies.items()}


def insert_blobs(connection: Connection, at: Instant, rows: Mapping[tuple[TenantId, bytes], Packed]) -> None:
    """Keep these texts where they are not kept yet; by address, so that no two batches deadlock."""
    if rows:
        dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
        statement = dialect.insert(blobs).on_conflict_do_nothing()
        connection.execute(statement, [_row(at, place[0], rows[place]) for place in sorted(rows)])


def select_kept(connection: Connection, tenant: TenantId, addresses: Collection[bytes]) -> set[bytes]:
    """Select those addresses of a tenant at which a text is kept."""
    wanted = sorted(addresses)
    statement = sa.select(blobs.c.address).where(blobs.c.tenant == tenant)
    if connection.dialect.name == "postgresql":
        any_of = sa.any_(sa.literal(wanted, sa.ARRAY(sa.LargeBinary)))
        return set(connection.execute(statement.where(blobs.c.address == any_of)).scalars()) if wanted else set()
    found: set[bytes] = set()
    for begin in range(0, len(wanted), _MOST_NAMED):
        some = statement.where(blobs.c.address.in_(wanted[begin : begin + _MOST_NAMED]))
        found.update(connection.execute(some).scalars())
    return found


def select_sizes(connection: Connection, tenant: TenantId, addresses: Sequence[bytes]) -> dict[bytes, int]:
    """Select the lengths of a tenant's texts, before they were compressed."""
    statement = sa.select(blobs.c.address, blobs.c.size)
    found = connection.execute(statement.where(blobs.c.tenant == tenant, blobs.c.address.in_(addresses)))
    return {row.address: row.size for row in found}


def select_bodies(connection: Connection, tenant: TenantId, addresses: Sequence[bytes]) -> dict[bytes, bytes]:
    """Select a tenant's texts, compressed."""
    statement = sa.select(blobs.c.address, blobs.c.body)
    found = connection.execute(statement.where(blobs.c.tenant == tenant, blobs.c.address.in_(addresses)))
    return {row.address: row.body for row in found}


def _row(at: Instant, tenant: TenantId, blob: Packed) -> dict[str, Any]:
    return {"tenant": tenant, "address": blob.address, "size": blob.size, "body": blob.body, "kept_at": at}
