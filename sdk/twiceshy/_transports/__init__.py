"""How requests reach the service."""
