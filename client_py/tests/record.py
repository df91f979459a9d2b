"""Compares samples, plans, schedules and training rows with a record of an earlier version.

Usage: python tests/record.py [--device go] [--write]

Every value is compared to the bit. The device go computes the same bits on every x86-64 processor with FMA, and
test_record.py holds it to them. XLA (cpu) may round differently on a processor other than the one of the record. So the
greatest difference of an entry is printed, relative to its largest value: 1e-7 is rounding of float32, which steps of
training amplify; 1e-2 is a change. `--write` makes a new record: only after a change that CHANGELOG names.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import conftest
import numpy as np
import pyarrow.flight as fl
import wire

HERE = Path(__file__).parent
PROGRAM = HERE.parents[1] / "bin" / "anisoflight"
RECORD = HERE / "testdata" / "record.npz"

SOLVERS = ["euler", "heun", "ab", "ipndm", "ipndm_v", "dpmpp2m", "dpmpp3m", "dpmpp3m_taylor", "unipc", "deis"]
GEODESIC = {"kind": "geodesic", "model": "exact", "dataset": "blocks", "samples": 64, "points": 12}
SCHEDULES: dict[str, dict[str, Any]] = {
    "geodesic-g": {**GEODESIC, "order": 1, "c": 1, "T": 400},
    "geodesic-dct": {**GEODESIC, "order": 1, "c": 1, "T": 400, "basis": "dct", "k": 16, "per_class": True},
    "geodesic-80": {**GEODESIC, "order": 1, "c": 1, "T": 6400},
    "log-linear": {"kind": "log-linear", "T": 400},
    "cosine": {"kind": "cosine", "T": 400},
    "start": {"kind": "start", "dataset": "blocks", "sigma_max": 10},
}
FEW = {"model": "exact", "dataset": "blocks", "nfe": 4, "samples": 128, "solvers": ["ipndm", "dpmpp2m"], "learn": False}
MEASURED = ["seconds", "gflops", "mfu"]  # columns of a run's rows that no two runs share


def samples() -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests of Sample, each with the name of its entry."""
    for solver in SOLVERS:
        yield f"{solver} on a schedule", {"solver": solver, "schedule": "geodesic-g", "steps": 5}
        grid = {"grid": "edm", "steps": 5, "schedule": {"edm": {"T": 400}}}
        yield f"{solver} on the grid edm", {"solver": solver, **grid}
        yield f"{solver} on a schedule per class", {"solver": solver, "schedule": "geodesic-dct", "steps": 5}
        yield f"{solver}, polynomial", {"solver": solver, "grid": "polynomial", "nfe": 6}
    churn = {"S_churn": 4, "S_min": 0.01, "S_max": 10, "S_noise": 1.003}
    yield "heun with churn", {"solver": "heun", "grid": "edm", "steps": 6, **churn}
    yield "heun, endpoint", {"solver": "heun", "second_point": "endpoint", "schedule": "geodesic-dct", "steps": 4}
    yield "unipc bh1", {"solver": "unipc", "variant": "bh1", "nfe": 8, "order": 3}
    yield "guided", {"solver": "heun", "steps": 3, "guidance": 2.0, "grid": "edm"}
    for name in ("log-linear", "cosine", "start"):
        yield f"heun on {name}", {"solver": "heun", "schedule": name, "steps": 5}
    yield "few", {"plan": "few"}


def numbers(value: Any) -> list[float]:
    """The numbers of a JSON value, in order."""
    if isinstance(value, dict):
        return [number for key in sorted(value) for number in numbers(value[key])]
    if isinstance(value, list):
        return [number for inner in value for number in numbers(inner)]
    return [float(value)] if isinstance(value, int | float) else []


def schedules(client: fl.FlightClient) -> Iterator[tuple[str, np.ndarray]]:
    wire.act(client, "MakeModel", {"name": "exact", "dataset": "blocks", "floor": 0.05})
    for name, request in SCHEDULES.items():
        wire.act(client, "MakeSchedule", {"name": name, **request})
        (file,) = wire.act(client, "ExportSchedule", {"schedule": name})
        kept = {key: file[key] for key in ("T", "g0", "theta", "paths", "energy") if key in file}
        yield f"schedule {name}", np.array(numbers(kept))
    wire.act(client, "MakePlan", {"name": "few", **FEW})


def training(client: fl.FlightClient) -> Iterator[tuple[str, np.ndarray]]:
    common = {"dataset": "blocks", "batch": 8, "kimg": 1, "T": 400, "order": 1, "c": 1}
    joint = {"model": "trained", "knots": 8, "init": "edm", "lr": 1e-5, "ema_halflife_kimg": 500}
    runs: dict[str, dict[str, Any]] = {
        "pretrain": {"stage": "pretrain", "network": wire.NETWORK, "lr": 5e-3},
        "isotropic": {"stage": "isotropic", **joint},
        "anisotropic": {
            "stage": "anisotropic",
            **joint,
            "schedule_lr": 1e-4,
            "ratio_embedding": False,
            "p_std_subspace": 0,
            "family": {"basis": "dct", "k": 16, "per_class": True},
        },
    }
    for name, settings in runs.items():
        wire.act(client, "CreateRun", {"name": name, **common, **settings})
        rows = wire.get(client, "TrainStep", {"run": name, "steps": 12}).table.drop_columns(MEASURED)
        yield f"run {name}", np.array([column.to_pylist() for column in rows.columns], float)
        wire.act(client, "SaveModel", {"run": name, "name": "trained" if name == "pretrain" else name})
    for name in runs:
        model = "trained" if name == "pretrain" else name
        reply = wire.get(client, "Sample", {"model": model, "n": 4, "steps": 5, "dtype": "float32"})
        yield f"samples of run {name}", wire.numbers(reply.table["sample"])


def observe(device: str) -> Iterator[tuple[str, np.ndarray]]:
    """What a server on a device answers."""
    with tempfile.TemporaryDirectory() as folder:
        command = [PROGRAM, "serve", "--data", folder, "--listen", "127.0.0.1:0", "--device", device]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                assert server.stderr is not None
                log = iter(server.stderr.readline, "")
                address = next(
                    match[1] for line in log if (match := re.search(r"listening on (?:grpc://)?(\S+:\d+)", line))
                )
                with fl.FlightClient(f"grpc://{address}") as client:
                    images, labels = conftest.pictures(64)
                    table = wire.table(image=wire.tensor(images), label=wire.int32(labels))
                    wire.put(client, fl.FlightDescriptor.for_path("datasets", "blocks"), table)
                    yield from schedules(client)
                    for name, request in samples():
                        reply = wire.get(client, "Sample", {"model": "exact", "n": 4, "dtype": "float32", **request})
                        yield name, wire.numbers(reply.table["sample"])
                        if "S_churn" not in request and "guidance" not in request:
                            of = {} if "plan" in request else {"model": "exact", "label": 1}
                            (plan,) = wire.act(client, "PlanSampler", {**of, **request})
                            for name_of in ("provenance", "info", "law"):  # which have seconds, and no numbers
                                plan.pop(name_of, None)
                            yield f"plan, {name}", np.array(numbers(plan))
                    yield from training(client)
            finally:
                server.terminate()


def changes(seen: dict[str, np.ndarray]) -> list[str]:
    """A line for each entry that differs from the record's of the same devices."""
    devices = {name.split(":")[0] for name in seen}
    lines = []
    with np.load(RECORD) as record:
        wanted = {name: record[name] for name in record.files if name.split(":")[0] in devices}
    for name in sorted(wanted.keys() | seen.keys()):
        have, want = seen.get(name), wanted.get(name)
        if have is None or want is None:
            lines.append(f"{name}: {'missing' if have is None else 'not in the record'}")
        elif have.shape != want.shape:
            lines.append(f"{name}: shape {have.shape}, was {want.shape}")
        elif not np.array_equal(have, want, equal_nan=True):
            lines.append(f"{name}: differs by at most {difference(have, want):.2g} of the largest value")
    return lines


def difference(have: np.ndarray, want: np.ndarray) -> float:
    """The greatest difference relative to the largest value; in a table of columns [column, row], to its column's.

    It is infinite if one has a number where the other has none.
    """
    if (np.isnan(have) != np.isnan(want)).any():
        return float("inf")
    have, want = (np.nan_to_num(np.atleast_2d(a) if a.ndim < 3 else a.reshape(1, -1)) for a in (have, want))
    apart, largest = np.abs(have - want).max(axis=1), np.abs(want).max(axis=1)
    return float((apart / np.where(largest == 0, 1, largest)).max())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="make a new record")
    parser.add_argument("--device", choices=["go", "cpu"], help="one device alone")
    options = parser.parse_args()
    seen = {f"{device}: {name}": value for device in ("go", "cpu") if options.device in (None, device)
            for name, value in observe(device)}  # fmt: skip
    if options.write:
        np.savez_compressed(RECORD, allow_pickle=False, **{name: np.asarray(value) for name, value in seen.items()})
        print(f"{len(seen)} entries in {RECORD}")
        return 0
    changed = changes(seen)
    print(*changed, json.dumps({"entries": len(seen), "changed": len(changed)}), sep="\n")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
