"""Calls of a server and their streams, and tables of Arrow tensors. `anisoflight.operations` gives them meaning."""
