"""Adapters of the ports: where the guard keeps its record."""
