"""Normalisers: one spelling for what a tool says is written in several ways, and never one for two things.

Each is a pure function of one value, which raises ValueError, for people, where the value is not what it reads.
What it wrote is one value: roles reach no further.
"""
