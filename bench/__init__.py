"""The bench: ours and the peer in turn, on the same machine, under the same load."""
