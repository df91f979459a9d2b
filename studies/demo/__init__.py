"""The main job on real data: ``python -m studies.demo`` (``make demo``).

A network is trained on patches of photographs, `few` searches its samplers, and a page shows and measures them. Begin
reading at :mod:`.__main__`; the other modules also serve the reports.
"""
