"""What the server says of itself and of what it holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.flight as fl
import pytest
import wire

ACTIONS = [
    "Sample",
    "EvaluateSchedule",
    "TrainStep",
    "EvaluateModel",
    "ServerInfo",
    "ListModels",
    "DescribeModel",
    "LoadModel",
    "UnloadModel",
    "ListSchedules",
    "ListDatasets",
    "ListRuns",
    "GetRun",
    "CreateRun",
    "StartRun",
    "PauseRun",
    "CancelRun",
    "SaveModel",
    "MakeSchedule",
    "MakeBasis",
    "DeleteModel",
    "DeleteSchedule",
    "DeleteDataset",
    "DeleteRun",
]


def test_every_action_is_listed_with_a_sentence(flight: fl.FlightClient) -> None:
    described = {action.type: action.description for action in flight.list_actions()}
    assert set(ACTIONS) <= set(described)
    assert all(len(sentence) > 10 for sentence in described.values())


def test_server_info_needs_nothing(flight: fl.FlightClient) -> None:
    (info,) = wire.act(flight, "ServerInfo")
    assert info["version"]
    assert wire.act(flight, "ServerInfo", {})[0]["version"] == info["version"]


def test_flights_are_listed_by_path(flight: fl.FlightClient, model: str, dataset: str) -> None:
    paths = {tuple(part.decode() for part in info.descriptor.path) for info in flight.list_flights()}
    assert {("models", model), ("datasets", dataset), ("runs", "for-model")} <= paths


def test_what_is_listed_can_be_read(flight: fl.FlightClient, model: str, dataset: str) -> None:
    """A run's rows, too, without waiting for more."""
    wire.act(flight, "CreateRun", {"name": "waits", "stage": "pretrain", "dataset": dataset, "network": wire.NETWORK})
    for info in flight.list_flights():
        (endpoint,) = info.endpoints
        rows = wire.collect(flight.do_get(endpoint.ticket, fl.FlightCallOptions(timeout=60))).table.num_rows
        assert info.total_records in (rows, -1)
        assert flight.get_flight_info(info.descriptor).endpoints == info.endpoints
    wire.act(flight, "DeleteRun", {"run": "waits"})


def test_a_dataset_is_read_by_its_path(flight: fl.FlightClient, dataset: str) -> None:
    info = flight.get_flight_info(fl.FlightDescriptor.for_path("datasets", dataset))
    assert info.total_records == 64
    assert wire.collect(flight.do_get(info.endpoints[0].ticket)).table.num_rows == 64


def test_lists_name_what_there_is(flight: fl.FlightClient, model: str, dataset: str) -> None:
    assert model in wire.entries(wire.act(flight, "ListModels"))
    assert dataset in wire.entries(wire.act(flight, "ListDatasets"))
    assert "for-model" in wire.entries(wire.act(flight, "ListRuns"))
    assert model in wire.entries(wire.act(flight, "ListSchedules"))


def test_a_model_is_a_folder_that_can_be_loaded_again(flight: fl.FlightClient, model: str, data_folder: Path) -> None:
    folder = data_folder / "models" / model
    assert {"config.json", "model.safetensors"} <= {path.name for path in folder.iterdir()}
    (described,) = wire.act(flight, "DescribeModel", {"model": model})
    assert described["config"]["label_dim"] == 10

    wire.act(flight, "LoadModel", {"name": model, "path": model})  # the same folder again: nothing happens
    wire.act(flight, "LoadModel", {"name": "alias", "path": model})
    request = {"n": 2, "steps": 2, "dtype": "float32"}
    same = [wire.get(flight, "Sample", {"model": name, **request}).table["sample"] for name in (model, "alias")]
    assert same[0].equals(same[1])
    wire.act(flight, "UnloadModel", {"model": "alias"})
    assert wire.code(lambda: wire.act(flight, "DescribeModel", {"model": "alias"})) == "MODEL_NOT_FOUND"
    assert folder.exists()


def test_a_model_may_be_loaded_at_a_precision_of_its_own(flight: fl.FlightClient, model: str) -> None:
    (server,) = wire.act(flight, "ServerInfo")
    assert server["precision"] == "float32"
    wire.act(flight, "LoadModel", {"name": "rough", "path": model, "precision": "bfloat16"})
    (rough,) = wire.act(flight, "DescribeModel", {"model": "rough"})
    (exact,) = wire.act(flight, "DescribeModel", {"model": model})
    assert (rough["precision"], exact["precision"]) == ("bfloat16", "float32")
    request = {"n": 2, "steps": 2, "dtype": "float32"}
    tables = [wire.get(flight, "Sample", {"model": name, **request}).table for name in ("rough", model)]
    x, y = (wire.numbers(table["sample"]) for table in tables)
    assert 0 < np.linalg.norm(x - y) < 0.1 * np.linalg.norm(y)
    for wrong in ("float16", "BF16", 16):
        request = {"name": "rough", "path": model, "precision": wrong}
        assert wire.code(lambda request=request: wire.act(flight, "LoadModel", request)) == "BAD_REQUEST"
    wire.act(flight, "UnloadModel", {"model": "rough"})


def test_a_folder_may_appear_after_the_start(flight: fl.FlightClient, model: str, data_folder: Path) -> None:
    copy = data_folder / "models" / "copied"
    copy.mkdir()
    for file in (data_folder / "models" / model).iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    wire.act(flight, "LoadModel", {"name": "copied", "path": "copied"})
    assert wire.code(lambda: wire.act(flight, "LoadModel", {"name": model, "path": "copied"})) == "NAME_TAKEN"
    wire.act(flight, "DeleteModel", {"model": "copied"})
    assert "copied" not in wire.entries(wire.act(flight, "ListModels"))


@pytest.mark.parametrize("broken", ["config", "weights", "shape"])
def test_broken_model_folders_are_refused(flight: fl.FlightClient, model: str, data_folder: Path, broken: str) -> None:
    folder = data_folder / "models" / f"broken-{broken}"
    folder.mkdir()
    for file in (data_folder / "models" / model).iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    config, weights = folder / "config.json", folder / "model.safetensors"
    if broken == "config":
        config.write_text("{")
    elif broken == "weights":
        weights.write_bytes(weights.read_bytes()[:-1])
    else:
        config.write_text(
            config.read_text().replace('"label_dim": 10', '"label_dim": 9').replace('"label_dim":10', '"label_dim":9')
        )
    request = {"name": folder.name, "path": folder.name}
    assert wire.code(lambda: wire.act(flight, "LoadModel", request)) == "DAMAGED"  # as its manifest tells
    (folder / "manifest.json").unlink()
    assert wire.code(lambda: wire.act(flight, "LoadModel", request)) == "BAD_MODEL"


def test_paths_stay_inside_the_models_folder(flight: fl.FlightClient, model: str) -> None:
    for path in ("..", "../datasets", "/etc", f"{model}/../../models/{model}/../..", "missing"):
        assert wire.code(lambda path=path: wire.act(flight, "LoadModel", {"name": "out", "path": path})) in (
            "BAD_MODEL",
            "MODEL_NOT_FOUND",
        )
