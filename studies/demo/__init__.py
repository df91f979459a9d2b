"""The main job on real data: ``python -m studies.demo`` (``make demo``).

Experiments on data that is installed with scikit-learn, run through the server like any user's own:

* :mod:`.digits`: handwritten digits, few evaluations and what a learned isotropic schedule buys;
* :mod:`.patches`: patches of photographs, anisotropic schedules against a plain network, with ``--full`` only.

Begin reading at :mod:`.__main__`. Every claim of the report is a :class:`.checks.Check`. The command fails only if
something is broken: a claim that depends on the network is reported, met or not.
"""
