"""Recipes: from a data set and a checkpoint to the paper's table, one file in configs/ for each method.

- `recipe`: what a file says, over its base, and whether that can be used;
- `stages`: the commands that do it, and what has to be done before each;
- `twin`: the images of a recipe's scaled-down twin;
- ``python -m anisoflight.recipe``: print the stages, or do them. docs/recipes.md has the rest.
"""
