"""Protocols between the service and what it stands on."""
