"""What a study asks of the server's counts."""

from __future__ import annotations


def require_count(sampler: str, nfe: int, counted: int) -> None:
    """Raises RuntimeError if the server counted another number of evaluations than asked for."""
    if counted != nfe:
        raise RuntimeError(f"{sampler}: asked for {nfe} evaluations, the server counted {counted}")
