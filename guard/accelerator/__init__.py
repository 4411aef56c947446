"""The accelerator on Redis or Valkey: it may lose everything, hang or lie, and no answer changes by that."""
