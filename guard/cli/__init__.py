"""The verbs that the server adds to the command `twiceshy`."""
