"""What this repository measures and shows with the package `anisoflight`; none of it is in the installed wheel.

* :mod:`.demo`: the main job on real data, ``make demo``;
* :mod:`.reports`: the studies that docs cite, ``make report-rivals`` and others;
* :mod:`.gallery`: every figure of `anisoflight.figures` on one page, ``make figures``.
"""
