"""Every figure of `anisoflight.figures` on one page: ``python -m studies.gallery`` (``make figures``)."""
