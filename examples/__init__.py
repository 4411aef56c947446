"""Examples: each runs with one command against real local services, and is a test."""
