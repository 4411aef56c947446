"""HTTP exchanges at the boundary of a run: what is kept of a request, and of how it was answered."""
