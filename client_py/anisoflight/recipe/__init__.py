"""Recipes: from a data set and a checkpoint to the paper's table, one file in configs/ per method.

``python -m anisoflight.recipe`` prints the stages or runs them; see docs/recipes.md.
"""
