"""Experiments on small real data, each a page under studies/docs.

``python -m studies.reports.fair`` is the one to read first: anisotropic samplers against plain networks, over several
networks of each kind. ``python -m studies.reports.solvers`` and ``python -m studies.reports.families`` compare samplers
and schedules on one network a problem, trained on anisotropic noise; they take an hour on two cores.
Everything measured is kept under runs/reports, so a report that was interrupted goes on where it was, and one that was
finished is written again at once.
"""
