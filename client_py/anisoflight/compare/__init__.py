"""Comparison of samplers: how they are measured, and the table of `Client.compare`."""
