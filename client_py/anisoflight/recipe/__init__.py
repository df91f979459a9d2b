"""Recipes: from a data set and a checkpoint to the paper's table, one file in configs/ for each method.

``python -m anisoflight.recipe`` prints the stages, or does them; docs/recipes.md has the rest.
"""
