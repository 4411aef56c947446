"""A booking of a room as a saga: hold, payment, confirmation; what was done is taken back where the last one fails."""
