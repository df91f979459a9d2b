"""Calls of a server and their streams; images and tables in the forms of Arrow. `operations` gives them meaning."""
