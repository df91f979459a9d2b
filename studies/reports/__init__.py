"""Experiments on small real data, each a page under studies/docs.

Read ``reports.rivals`` first: the product against rivals that are tuned as well. Everything that was measured is kept,
so that a report which was interrupted goes on where it was.
"""
