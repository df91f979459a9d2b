"""What the documents say to clients without this package, done against a server."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anisoflight import Client

ROOT = Path(__file__).parents[2]


def blocks(document: str, word: str) -> list[str]:
    """The fenced Python blocks of a document that contain a word."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return [block for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE) if word in block]


@pytest.mark.parametrize("document", ["docs/wire.md", "client_py/README.md"])
def test_stock_pyarrow_gets_the_images(document: str, client: Client) -> None:
    (code,) = blocks(document, "fl.connect")
    assert "grpc://127.0.0.1:8815" in code
    names: dict[str, Any] = {}
    exec(code.replace("grpc://127.0.0.1:8815", client.location), names)
    names["client"].close()
    options = names.get("ticket") or names["request"]
    expected = client.sample(options.pop("model"), **{k: v for k, v in options.items() if k != "op"}).images
    assert names["images"].shape == (16, 8, 8, 1)
    assert names["images"].dtype == np.uint8
    assert (names["images"] == expected).all()
    assert np.ptp(expected) > 100


def test_the_notebook_target_installs_what_it_opens() -> None:
    """Its packages are pinned, each as in the other files, and among them is what runs a notebook and draws in it."""
    pins: dict[str, str] = {}
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-notebook.txt"):
        lines = (ROOT / "client_py" / name).read_text(encoding="utf-8").splitlines()
        for line in (line for line in lines if not line.startswith("#")):
            package, version = line.partition(";")[0].strip().split("==")
            assert pins.setdefault(package.lower(), version) == version, f"{name}: {line}, elsewhere {pins[package]}"
    assert {"jupyterlab", "ipykernel", "ipywidgets", "matplotlib", "scikit-learn"} <= pins.keys()
    command = ["make", "-n", "-B", "notebook"]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert done.index("-r client_py/requirements-notebook.txt") < done.index("-m jupyterlab client_py/notebooks")
    assert "`make notebook`" in (ROOT / "README.md").read_text(encoding="utf-8")
