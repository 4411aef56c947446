"""Adapters: one library, one module, one extra."""
