"""Pure rules: decisions as functions of values, `now` among them. No await, clock, I/O or randomness."""
