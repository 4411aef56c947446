"""A retention call that nobody can reproduce: replayed, narrowed down to one input, mended, and tested from then on."""
