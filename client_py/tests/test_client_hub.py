"""Schedules and models go to a hub and come back, through the real huggingface_hub and a hub of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hubserver import Repos
from hubserver import hub as serve_hub
from huggingface_hub import HfApi

from anisoflight import Client, hub


@pytest.fixture(scope="module")
def home() -> Iterator[tuple[HfApi, Repos]]:
    with serve_hub() as (endpoint, repos):
        yield HfApi(endpoint=endpoint, token="hf_test"), repos


def test_a_schedule_comes_back(client: Client, home: tuple[HfApi, Repos]) -> None:
    api, repos = home
    client.put_basis("hub-rows", np.eye(64)[:3].reshape(3, 8, 8), replace=True)
    table = {"subspace": [0, 0, 1, 1], "t": [0, 9, 0, 9], "g": [1e-6, 4, 1e-5, 4]}
    schedule = client.put_schedule("hub-pair", table, basis="hub-rows", replace=True)
    address = hub.push_schedule(schedule, "me/pair", api=api)
    assert "/me/pair/" in address
    assert sorted(repos["me/pair"]) == ["README.md", "basis.safetensors", "schedule.json"]
    assert b'hub.pull_schedule(client, "hub-pair", "me/pair")' in repos["me/pair"]["README.md"]
    back = hub.pull_schedule(client, "hub-back", "me/pair", replace=True, api=api)
    assert back.knots().equals(schedule.knots())
    vectors = back.vectors()
    assert vectors is not None
    np.testing.assert_array_equal(vectors[-1], np.eye(64)[:3].reshape(3, 8, 8))


def test_a_model_comes_back(client: Client, data_folder: Path, home: tuple[HfApi, Repos]) -> None:
    api, repos = home
    hub.push_model(data_folder / "models" / "digits", "me/digits", api=api)
    assert {"README.md", "model.safetensors", "config.json"} <= set(repos["me/digits"])
    folder = hub.pull_model("me/digits", data_folder / "models" / "hub-digits", api=api)
    client.load_model("hub-digits")
    one, two = (client.sample(name, n=2, steps=2, seed=4, progress=False).images for name in ("digits", "hub-digits"))
    np.testing.assert_array_equal(one, two)
    with pytest.raises(FileExistsError, match="must be a new one"):
        hub.pull_model("me/digits", folder, api=api)
    client.delete_model("hub-digits")


def test_what_is_none_is_told(client: Client, tmp_path: Path, home: tuple[HfApi, Repos]) -> None:
    api, repos = home
    repos["me/empty"] = {"README.md": b"nothing"}
    repos["me/other"] = {"schedule.json": b'{"format": "other"}'}
    with pytest.raises(ValueError, match=r"must hold schedule\.json, .*, got me/empty without"):
        hub.pull_schedule(client, "hub-none", "me/empty", api=api)
    with pytest.raises(ValueError, match="not a schedule file"):
        hub.pull_schedule(client, "hub-none", "me/other", api=api)
    with pytest.raises(ValueError, match=r"must hold model\.safetensors and config\.json"):
        hub.push_model(tmp_path, "me/none", api=api)
    with pytest.raises(ValueError, match=r"must hold model\.safetensors"):
        hub.pull_model("me/empty", tmp_path / "model", api=api)
    assert not any(tmp_path.iterdir())
