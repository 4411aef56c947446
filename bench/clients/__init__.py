"""Clients, each a process of its own: through the SDK, by hand, and to Restate's ingress."""
