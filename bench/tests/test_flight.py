"""`anisoflight-bench flight` measures pyarrow as well as Go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from anisoflight.serving.local import find_binary


def test_bench_flight() -> None:
    binary = Path(find_binary()).with_name("anisoflight-bench")
    command = [binary, "flight", "--mib", "4", "--rounds", "1", "--python", sys.executable, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    report = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout)
    assert report["tcp_gb_per_s"]["median"] > 0
    measured = {(m["operation"], m["client"]) for m in report["measures"]}
    assert measured == {(o, c) for o in ("get", "put", "exchange", "action") for c in ("Go", "pyarrow")}
    for measure in report["measures"]:
        assert measure["gb_per_s"]["median"] > 0
        assert measure["of_stock"]["median"] > 0
