"""Samples, distances and recipes on many machines, by Ray: the extra ``anisoflight[fleet]``, docs/scale.md.

`sampling` has the actors that ``python -m anisoflight.fid calc --ray`` measures with; `recipes` the stages of recipes
as a graph of tasks, ``python -m anisoflight.fleet``.
"""
