"""The main job on real data: ``python -m studies.demo`` (``make demo``).

Two small experiments on data that is installed with scikit-learn, run through the server like any user's own:

* :mod:`.patches`: patches of photographs, anisotropic schedules against a plain network;
* :mod:`.digits`: handwritten digits, what a learned isotropic schedule buys.

Begin reading at :mod:`.__main__`. Every number of the report comes from :mod:`.metrics`; every claim it makes is a
:class:`.checks.Check`, and a missed one fails the command.
"""
