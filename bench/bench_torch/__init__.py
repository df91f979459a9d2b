"""The same networks in PyTorch and in anisoflight, measured in turn: `make bench-torch`, bench/docs/model.md.

`network` is SongUNet in PyTorch and `probes` are two networks of diffusers; `programs` is what is measured of them,
`compiled` the same through Inductor, and `ours` the other half: a process of `anisoflight-bench model --drive`. A
`session` is one network on a number of threads: `agree` compares the outputs, `measure` takes the times and `report`
writes them down.
"""
