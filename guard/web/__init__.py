"""HTTP: the API over the service. Never reaches the store."""
