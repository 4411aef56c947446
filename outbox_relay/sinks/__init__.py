"""Sinks: how a message reaches the world, one file for each kind."""
