"""The same network in PyTorch and in anisoflight, measured in turn: `make bench-torch`, docs/benchmarks/model.md.

`network` is SongUNet in PyTorch, `programs` what is measured of it, `ours` the other half: a process of
`anisoflight-bench model --drive`. `agree` compares the outputs, `measure` takes the times and `report` writes them
down. It needs torch and nothing of the package anisoflight.
"""
