"""A server: start it, connect, and reach it from a command."""
