"""What the tests here measure, and their rows."""

import json
from pathlib import Path

from anisoflight.fid.cells import rows_of

SAMPLED = ["--steps", "1,3", "--seeds", "0-79,500-549", "--checkpoint", "10", "--features", "pixels", "--quiet"]
NETWORK = {
    "model_type": "SongUNet",
    "img_resolution": 8,
    "img_channels": 3,
    "model_channels": 8,
    "channel_mult": [1],
    "num_blocks": 1,
    "attn_resolutions": [],
}


def known(folder: Path, out: Path) -> list[str]:
    named = ["--model", "tiny", "--ref", str(folder / "blocks.npz"), "--out", str(out), "--allow-fewer"]
    return ["calc", *named, *SAMPLED]


def measured(path: Path) -> bytes:
    """The rows but for what time they took, and when."""
    rows = [{k: v for k, v in row.items() if k not in ("seconds", "finished")} for row in rows_of(path)]
    assert len(rows) == 4
    return json.dumps(rows).encode()
