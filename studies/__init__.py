"""What this repository measures and shows with the package `anisoflight`; none of it is in the installed wheel.

* :mod:`.demo`: the main job on real data, ``make demo``;
* :mod:`.reports`: the fair comparison with plain networks, ``make report-fair``; solvers, grids and families of
  schedules side by side, ``make report-solvers`` and ``make report-families``;
* :mod:`.gallery`: every figure of `anisoflight.figures` on one page, ``make figures``.
"""
