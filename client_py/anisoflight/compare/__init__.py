"""Samplers compared: how they are measured, by what, and the table of `Client.compare` and ``anisoflight compare``."""
