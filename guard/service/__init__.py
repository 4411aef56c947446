"""Use cases: one verb a file."""
