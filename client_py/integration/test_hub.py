"""Plans as folders of the Hugging Face Hub, with its own cache and without a network."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
import torch

import anisoflight
from anisoflight import Plan
from anisoflight.errors import BadRequestError
from anisoflight.torch import Denoiser, few


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    """What a search found without data, for a law in which bands differ."""
    rng = np.random.default_rng(0)
    spectrum = torch.tensor(rng.uniform(0.01, 1, (1, 1, 8, 8)), dtype=torch.float32)

    def denoised(x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        wide = sigma.reshape(-1, 1, 1, 1) ** 2
        return x * spectrum / (spectrum + wide)

    with anisoflight.serve(data=tmp_path_factory.mktemp("data")) as client:
        return few(Denoiser(denoised, "denoiser"), 3, (1, 8, 8), client=client, progress=False)


def _front(card: str) -> dict[str, Any]:
    return huggingface_hub.ModelCard(card).data.to_dict()


def test_a_folder_has_the_plan_and_a_card_that_says_what_it_is(found: Plan, tmp_path: Path) -> None:
    found.save_pretrained(tmp_path / "plan")
    again = Plan.from_pretrained(tmp_path / "plan")
    noise = np.random.default_rng(1).normal(size=(2, 1, 8, 8))
    assert np.array_equal(*(plan(lambda x, sigma: 0.5 * x, noise, progress=False) for plan in (found, again)))
    card = (tmp_path / "plan" / "README.md").read_text(encoding="utf-8")
    assert _front(card)["library_name"] == "anisoflight"
    assert "license" not in _front(card)
    assert found.info is not None
    ratio, spent = found.info["ratio"], found.info["evaluations"]
    title = "# 3 evaluations for a network of kind denoiser for values of 1×8×8"
    for said in (title, found.info["summary"], f"| gain | {ratio:.3g} ± ", f"| the search took | {spent:,} "):
        assert said in card
    (tmp_path / "plan" / "README.md").write_text("mine", encoding="utf-8")
    found.save_pretrained(tmp_path / "plan")
    assert (tmp_path / "plan" / "README.md").read_text(encoding="utf-8") == "mine"


def test_a_repository_is_read_from_the_cache_of_the_hub(found: Plan, tmp_path: Path) -> None:
    commit = "0" * 40
    repository = tmp_path / "models--you--plan"
    found.save_pretrained(repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    options = {"cache_dir": tmp_path, "local_files_only": True}
    assert Plan.from_pretrained("you/plan", **options).file == found.file
    with pytest.raises(FileNotFoundError):
        Plan.from_pretrained("you/another", **options)
    with pytest.raises(BadRequestError, match=r"no folder is at \./nothing, and it is no name of a repository"):
        Plan.from_pretrained("./nothing")


def test_a_plan_is_uploaded_with_its_card(found: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The card of a repository that has one stays."""
    calls: list[dict[str, Any]] = []

    class Url(str):
        repo_id = "you/plan"

    def create_repo(repo: str, **options: Any) -> Url:
        calls.append({"repo": repo, **options})
        return Url("https://huggingface.co/you/plan")

    def upload_folder(repo_id: str, folder_path: str, **_: Any) -> None:
        shutil.copytree(folder_path, tmp_path / repo_id, dirs_exist_ok=True)

    fake = {"create_repo": create_repo, "upload_folder": upload_folder,
            "file_exists": lambda repo, name, token=None: (tmp_path / repo / name).exists()}  # fmt: skip
    for name, function in fake.items():
        monkeypatch.setattr(huggingface_hub, name, function)
    assert found.push_to_hub("plan", private=True) == "https://huggingface.co/you/plan"
    assert calls == [{"repo": "plan", "token": None, "private": True, "exist_ok": True}]
    card = tmp_path / "you/plan/README.md"
    assert 'Plan.from_pretrained("you/plan")' in card.read_text(encoding="utf-8")
    card.write_text("mine", encoding="utf-8")
    found.push_to_hub("plan")
    assert card.read_text(encoding="utf-8") == "mine"
    assert Plan.from_pretrained(tmp_path / "you/plan").file == found.file


def test_a_card_says_how_the_network_must_be_asked(found: Plan, tmp_path: Path) -> None:
    file = {**found.file, "provenance": {**(found.provenance or {}), "clip": 1.0, "temperature": 0.5}}
    file["stages"] = [{**stage, "guidance": 0.5} for stage in file["stages"]]
    Plan(file).save_pretrained(tmp_path / "plan")
    card, plain = (tmp_path / "plan" / "README.md").read_text(encoding="utf-8"), tmp_path / "plain"
    found.save_pretrained(plain)
    assert "pipe.scheduler" not in card  # refuses it
    assert "pipe.scheduler" in (plain / "README.md").read_text(encoding="utf-8")
    for said in ("| guidance | set for each", "| x_0 | clipped to ±1 |", "| temperature of the noise | 0.5 |"):
        assert said in card
