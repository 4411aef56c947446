"""The outbox relay: a process of its own that delivers what agents stage, once.

Its import contracts hold from the first day; its rooms come with the outbox.
"""
