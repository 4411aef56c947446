"""A refund behind approval: an agent asks, a person decides, and the money moves once."""
