"""Why a database cannot be used at all; each message says what to do.

DatabaseRefused
├── AddressRefused      the address is not one that the store understands
├── FileRefused         the SQLite file cannot be opened or written, or is not a database
├── FileLocked          another program holds the SQLite file
├── ServerRefused       PostgreSQL cannot be reached, or does not let us in
├── SchemaOutdated      the schema is older than this code, or there is none
└── SchemaTooNew        the schema is newer than this code
"""


class DatabaseRefused(Exception):
    """The database cannot be used."""


class AddressRefused(DatabaseRefused, ValueError):
    """The address is not one that the store understands."""


class FileRefused(DatabaseRefused):
    """The SQLite file cannot be opened or written, or is not a database."""


class FileLocked(DatabaseRefused):
    """Another program holds the SQLite file."""


class ServerRefused(DatabaseRefused):
    """PostgreSQL cannot be reached, or does not let us in."""


class SchemaOutdated(DatabaseRefused):
    """The schema is older than this code, or there is none."""


class SchemaTooNew(DatabaseRefused):
    """The schema is newer than this code."""
