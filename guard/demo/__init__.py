"""The demo: an agent books a real calendar through four accidents, without the guard and with it."""
