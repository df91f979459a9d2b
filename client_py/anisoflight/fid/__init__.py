"""FID and its kin: samples streamed from the server through features to running statistics, against a reference.

``python -m anisoflight.fid`` is the way in; docs/fid.md goes from a model to the paper's table. In order of use:

- `sources`: images from a server, a folder, a zip, an npz;
- `features`: what they are seen through;
- `measure`: the pass over them, which can be interrupted and done by many;
- `reference`: what they are compared with, EDM's npz;
- `measurement`: rows of results with their provenance, each measured once;
- `shards`: parts of a measurement, made apart and merged;
- `table`: methods × NFE beside the published numbers.
"""
