"""How providers are reached."""
