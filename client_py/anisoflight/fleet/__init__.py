"""Samples and distances on many machines, by Ray: the extra ``anisoflight[fleet]``, docs/scale.md."""
