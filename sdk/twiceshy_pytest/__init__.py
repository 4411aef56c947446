"""The pytest plugin of Twiceshy: replays recordings of agents, and checks what they do now.

It is a package of its own so that pytest loads it at every start without loading Twiceshy.
"""
