"""FID and related distances: samples streamed from the server through features to statistics, against a reference.

``python -m anisoflight.fid`` is the command; see docs/fid.md. In order of use: `sources`, `features`,
`stretches`, `reference`, `rows`, `shards`, `fleet`, `table`; `cells` keeps the rows.
"""
