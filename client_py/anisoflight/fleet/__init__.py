"""Samples, distances and recipes on many machines, by Ray: the extra ``anisoflight[fleet]``, docs/scale.md.

- `workers`: what an actor does, a server of its own and the features, without a word of Ray;
- `sampling`: the actors as one, which ``python -m anisoflight.fid calc --ray`` measures with;
- `recipes`: the stages of recipes as a graph of tasks, ``python -m anisoflight.fleet recipe``.
"""
