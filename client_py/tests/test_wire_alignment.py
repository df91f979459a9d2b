"""Numbers arrive where numpy wants them: stock pyarrow sees aligned arrays, whatever the size of a message."""

import json
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
import wire

import anisoflight


def arrays(batch: pa.RecordBatch) -> dict[str, np.ndarray]:
    """The batch's columns, as numpy sees them in place."""
    out = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if isinstance(column.type, pa.FixedShapeTensorType):
            out[name] = column.to_numpy_ndarray()
        elif isinstance(column.type, pa.FixedSizeListType):
            out[name] = column.flatten().to_numpy()
        else:
            out[name] = column.to_numpy()
    return out


def check(batches: list[pa.RecordBatch]) -> None:
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        for name, array in arrays(batch).items():
            if array.size:
                assert array.flags.aligned, name
                assert array.ctypes.data % 16 == 0, name
    assert rows


@pytest.mark.parametrize("n", [1, 2, 3, 9, 64, 300])
def test_get(flight: fl.FlightClient, model: str, n: int) -> None:
    request = {"model": model, "n": n, "steps": 1, "solver": "euler", "dtype": "float32"}
    check(wire.get(flight, "Sample", request).batches)


@pytest.mark.parametrize("n", [1, 5, 40])
def test_exchange(flight: fl.FlightClient, model: str, n: int) -> None:
    x = np.random.default_rng(0).standard_normal((n, 8, 8, 1), np.float32)
    rows = wire.table(x=wire.tensor(x), label=wire.int32([0] * n), sigma=np.ones(n))
    check(wire.exchange(flight, "Denoise", {"model": model}, rows.to_batches()).batches)


BIG = """
import json, sys
import numpy as np, pyarrow as pa, pyarrow.flight as fl
client = fl.FlightClient(sys.argv[1])
reader = client.do_get(fl.Ticket(sys.argv[2].encode()))
batches = [chunk.data for chunk in reader if chunk.data.num_rows]
for result in client.do_action(fl.Action("EvaluateSchedule", sys.argv[3].encode())):
    batches += pa.ipc.open_stream(result.body).read_all().to_batches()
column = lambda batch, i: batch.column(i).storage.flatten() if i < 1 and batch.num_columns == 3 else batch.column(i)
print(json.dumps([column(b, i).to_numpy().ctypes.data % 64 for b in batches for i in range(b.num_columns)]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="tells glibc's malloc to map what is large")
def test_mapped_memory_is_aligned_to_64(server: anisoflight.LocalClient, flight: fl.FlightClient) -> None:
    """Where malloc maps a message, as it does for large ones that are kept, every column begins at a multiple of 64."""
    images = np.zeros((4000, 16, 16, 1), np.float32)
    rows = wire.table(image=wire.tensor(images), label=wire.int32([1] * 4000))
    wire.put(flight, fl.FlightDescriptor.for_path("datasets", "wide"), rows)
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            BIG,
            server.location,
            json.dumps({"op": "Dataset", "dataset": "wide"}),
            json.dumps({"schedule": "edm", "points": 20_000}),
        ],
        env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    wire.act(flight, "DeleteDataset", {"dataset": "wide"})
    assert set(json.loads(found)) == {0}
