"""The documents and the reference of the Python and the Go packages as a site, by MkDocs: ``python -m pages OUT``."""
