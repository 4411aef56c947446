"""What the SDK and the service agree on: canonical form, wire structs, problem codes. A pure leaf."""
