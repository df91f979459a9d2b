"""Experiments on small real data, each a page under docs/reports.

``python -m studies.reports.solvers`` and ``python -m studies.reports.families`` take an hour on two cores.
Everything measured is kept under runs/reports, so a report that was interrupted goes on where it was, and one that was
finished is written again at once.
"""
