"""Pictures of schedules, subspaces and networks, one function each. Needs matplotlib (the extra `plot`).

    from anisoflight import figures

    figures.variances({"EDM": client.schedule("edm"), "learned": client.schedule("digits")})
    figures.ratio(client.schedule("patches"))

The functions take `Schedule`s, the DataFrames that `Schedule.evaluate` and `Client.evaluate_model` return, or arrays.
Those of one panel draw on the axes `ax`, or on new ones, and return them; those of many return the figure. Colours
are Okabe and Ito's, which readers with any colour vision can tell apart.

``python -m studies.gallery`` trains small models through the server and draws all of it on one page.
"""

from __future__ import annotations

from .curves import POINTS, class_ratios, geometric_mean, ratio, variances
from .denoising import reconstruct, reconstructions
from .losses import loss_by_level
from .style import COLOURS, STYLE, axes
from .subspaces import classical_mds, components, dct_functions, subspace_distances, subspace_map

__all__ = [
    "COLOURS",
    "POINTS",
    "STYLE",
    "axes",
    "class_ratios",
    "classical_mds",
    "components",
    "dct_functions",
    "geometric_mean",
    "loss_by_level",
    "ratio",
    "reconstruct",
    "reconstructions",
    "subspace_distances",
    "subspace_map",
    "variances",
]
