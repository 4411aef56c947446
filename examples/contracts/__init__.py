"""A contract that was called low risk and is not: found, forked at the guilty call, mended, and tested from then on."""
