"""Samples and distances on many machines, by Ray: the extra ``anisoflight[fleet]``; see docs/scale.md."""
