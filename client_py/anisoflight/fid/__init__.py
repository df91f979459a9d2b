"""FID and its kin: samples streamed from the server through features to statistics, against a reference.

``python -m anisoflight.fid`` is the way in; docs/fid.md goes from a model to the paper's table. In order of use:
`sources`, `features`, `measure`, `reference`, `measurement`, `shards`, `table`.
"""
