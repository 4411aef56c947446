"""The store on SQL: PostgreSQL and SQLite, one behaviour."""
