"""The guard: the service that every mutating tool call passes before it may touch the world."""
