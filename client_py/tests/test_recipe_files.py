"""What recipes say: the paper's settings, mistakes, the stages and their commands, and twins."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anisoflight.recipe.__main__ import _check_data, _within, main
from anisoflight.recipe.recipe import Recipe, RecipeError, _read, load
from anisoflight.recipe.stages import Place, Stage, most_ratio, stages_of
from anisoflight.serving.local import find_binary

CONFIGS = Path(__file__).parents[2] / "configs"
PLACE = Place(Path("data"), "f")
SHARED = ["isotropic", "dct", "pca"]
PER_CLASS = [f"{method}-per-class" for method in SHARED]
TABLE = [9, 11, 13, 15, 19, 39, 79, 119]
PAPER: dict[str, dict[str, Any]] = {  # c of the anisotropic stage, parameters of EDM's published networks
    "cifar10": {"images": 50000, "parameters": 55735299, "batch": 256, "c": 0.5, "halflife": 500},
    "afhqv2": {"images": 15803, "parameters": 61805571, "batch": 1024, "c": 2, "halflife": 500},
    "ffhq": {"images": 70000, "parameters": 61805571, "batch": 1024, "c": 1, "halflife": 500},
    "imagenet64": {"images": 1281167, "parameters": 295899267, "batch": 512, "c": 1, "halflife": 50000},
}
METHODS = {
    "cifar10": PER_CLASS + SHARED,
    "afhqv2": PER_CLASS + SHARED,
    "ffhq": SHARED,  # no classes
    "imagenet64": PER_CLASS + SHARED,
}
SMALL = [CONFIGS / "cifar10-16" / f"{method}.yaml" for method in ("paper", "isotropic", "pca", *PER_CLASS[:2])]
FILES = [CONFIGS / folder / f"{method}.yaml" for folder in METHODS for method in METHODS[folder]]


@pytest.fixture(scope="module")
def recipes() -> dict[Path, Recipe]:
    return {recipe.file: recipe for recipe in load(FILES)}


@pytest.fixture(scope="module")
def twins() -> dict[Path, Recipe]:
    return {recipe.file: recipe for recipe in load(FILES, twin=True)}


def learns(recipe: Recipe) -> Stage:
    return next(s for s in stages_of(recipe, PLACE) if s.kind == "train" and s.makes == recipe.model)


def test_every_file_is_known() -> None:
    assert {path for path in CONFIGS.glob("*/*.yaml") if path.stem not in ("base", "conditional")} == {*FILES, *SMALL}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_papers_settings(recipes: dict[Path, Recipe], path: Path) -> None:
    recipe, paper = recipes[path], PAPER[path.parent.name]
    isotropic = path.stem.startswith("isotropic")
    want = {
        "stage": "isotropic" if isotropic else "anisotropic",
        "c": 1 if isotropic else paper["c"],
        "order": 1,
        "lr": 1e-5,
        "schedule_lr": 1e-2 if isotropic else 1e-4,
        "batch": paper["batch"],
        "kimg": 1200,
        "flip": True,
        "lr_ramp": "published",
        "schedule_lr_ramp": "published",
        "ema_halflife_kimg": paper["halflife"],
        "dataset": path.parent.name,
    }
    settings = learns(recipe).request
    want |= {"init": "edm", "T": 6400} if isotropic else {}
    assert {name: settings[name] for name in want} == want
    assert settings.get("family", {}).get("per_class", False) == (path.stem in PER_CLASS)
    assert not {"beta2", "train_network"} & set(settings)  # the defaults are the paper's
    assert recipe.dataset.images == paper["images"]
    assert recipe.fid.nfe == ([9, 11, 13, 15, 17, 35, 59, 79] if path.parent.name == "cifar10" else TABLE)
    assert recipe.fid.counts == [50000] * 3
    own = path.parent.name == "afhqv2" and path.stem in PER_CLASS  # EDM has no network with its classes
    assert recipe.network_model == f"{path.parent.name}-{'conditional' if own else 'edm'}"


def test_a_seed_is_that_of_all_runs_and_ends_their_names() -> None:
    for recipe in load(SMALL, seed=2):
        stages = stages_of(recipe, PLACE)
        runs = [stage for stage in stages if stage.trains]
        assert all(stage.makes.endswith("-s2") and stage.request["seed"] == 2 for stage in runs)
        assert runs[-1].request["model"] == runs[-2].makes
        assert "--under train" in stages[0].command


def test_what_would_be_done(capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(CONFIGS / folder / "dct.yaml") for folder in PAPER]
    assert main([*files, "--dry-run"]) == 0
    text = capsys.readouterr().out
    assert re.findall(r"(\d+) parameters", text) == [str(paper["parameters"]) for paper in PAPER.values()]
    kinds = re.findall(r"^# \d+ (\w+)", text.partition("\n\nrecipe")[0], re.MULTILINE)
    assert " ".join(kinds) == "data network train train figures reference fid fid fid fid fid fid table"
    assert "\nanisoflight train --data data --name cifar10-dct --stage anisotropic" in text
    assert re.findall(r"add up to ([\d.]+): g₁/g₂ can reach about ([\d.]+)", text) == [
        ("0.0157", "1.276"), ("0.0039", "1.063"), ("0.0039", "1.063"), ("0.0078", "1.130")
    ]  # fmt: skip


def test_without_rates_no_ratio_arises() -> None:
    asked = {"kimg": 1200, "batch": 256, "schedule_lr": 1e-12}
    assert most_ratio(asked, 6400) == pytest.approx((0, 1), abs=1e-8)


def test_the_largest_ratio_is_that_of_paths_moved_by_the_rates() -> None:
    """Every θ of EDM's path by `reach`, up before a knot and down after it, and the other way round."""
    reach, most = most_ratio({"kimg": 1200, "batch": 256, "schedule_lr": 1e-4}, 6400)
    sigma = np.linspace(0.002 ** (1 / 7), 80 ** (1 / 7), 32) ** 7
    rises = np.diff(np.log([1e-9, *(sigma[1:] ** 2)]))

    def path(by: np.ndarray) -> np.ndarray:
        moved = np.log1p(np.exp(np.log(np.expm1(rises)) + by))
        return rises.sum() * np.cumsum(moved) / moved.sum()

    ratios = []
    for knot in range(1, 31):
        by = np.where(np.arange(31) < knot, reach, -reach)
        ratios.append(np.exp(path(by) - path(-by))[knot - 1])
    assert max(ratios) == pytest.approx(most, rel=1e-9)


def test_rows_next_to_the_method(recipes: dict[Path, Recipe]) -> None:
    recipe = recipes[CONFIGS / "cifar10" / "dct.yaml"]
    rows = {stage.makes: stage.command for stage in stages_of(recipe, PLACE) if stage.kind == "fid"}
    for row, parts in {
        "EDM": ["--model cifar10-edm", "--solver heun", "--grid edm"],
        "EDM ipndm": ["--model cifar10-edm", "--solver ipndm", "--grid polynomial"],
        "EDM, uniform in t": ["--model cifar10-edm", "--schedule edm --grid schedule", "--second-point endpoint"],
        "dct": ["--model cifar10-dct", "--solver heun", "--second-point endpoint"],
        "dct, EDM's grid": ["--model cifar10-dct", "--grid edm", "--second-point endpoint"],
        "dct, EDM's grid, midpoint": ["--model cifar10-dct", "--grid edm", "--second-point midpoint"],
    }.items():
        command = rows.pop(row)
        assert [part for part in [*parts, "--nfe 9,11,13,15,17,35,59,79"] if part not in command] == []
        assert command.count("--second-point") == (row != "EDM ipndm")
    assert rows == {}


@pytest.mark.parametrize("method", ["imagenet64/pca", "afhqv2/dct-per-class"])
def test_commands_can_be_typed(recipes: dict[Path, Recipe], method: str) -> None:
    """The program takes the flags of each: it gets as far as to look for its server."""
    for stage in stages_of(recipes[CONFIGS / f"{method}.yaml"], PLACE):
        if stage.words[0] == "anisoflight":
            command = [find_binary(), *stage.words[1:], "--server", "127.0.0.1:1"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert (done.returncode, "no server answers" in done.stderr) == (1, True), done.stderr


def test_twins_have_the_same_stages(recipes: dict[Path, Recipe], twins: dict[Path, Recipe]) -> None:
    size = {"dataset", "model", "family", "batch", "microbatch", "kimg", "lr_ramp", "schedule_lr_ramp"}
    for path in FILES:
        full, small = (learns(kind[path]).request for kind in (recipes, twins))
        assert {name: small[name] for name in full if name not in size} == {
            name: full[name] for name in full if name not in size
        }
        full, small = (
            [(s.kind, s.trains) for s in stages_of(kind[path], PLACE) if s.kind in ("data", "basis", "train")]
            for kind in (recipes, twins)
        )
        assert full == small
        assert recipes[path].name != twins[path].name
        types = {kind[path].network.config["model_type"] for kind in (recipes, twins)}
        assert len(types) == 1


GOOD = "base: base.yaml\ntrain: {stage: isotropic}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("base", "isotropic"):
        shutil.copy(CONFIGS / "cifar10" / f"{name}.yaml", tmp_path)
    (tmp_path / "other.yaml").write_text("base: base.yaml\nname: other\ntrain: {stage: isotropic}\n")
    return tmp_path


def test_a_file_over_its_base(folder: Path) -> None:
    """Mappings are merged, lists replaced; 1e-4 is a number."""
    mine = "fid: {nfe: [7]}\nnetwork: {config: {dropout: 0.2}}\n"
    (folder / "mine.yaml").write_text(GOOD.replace("isotropic", "isotropic, lr: 1e-4") + mine)
    (recipe,) = load([folder / "mine.yaml"])
    assert recipe.fid.nfe == [7]
    assert recipe.fid.solver == "heun"
    assert recipe.network.config["dropout"] == 0.2
    assert recipe.network.config["channel_mult"] == [2, 2, 2]
    assert recipe.train["batch"] == 256
    assert recipe.train["lr"] == 1e-4


UNCONDITIONAL = "base: base.yaml\nnetwork: {config: {label_dim: 0}}\n"


@pytest.mark.parametrize(
    ("entries", "entry", "said"),
    [
        (GOOD + "dataset: {resolution: 64}", "network.config.img_resolution", "32, but dataset.resolution is 64"),
        (GOOD + "dataset: {channels: 1}", "network.config.img_channels", "3, but dataset.channels is 1"),
        (GOOD + "dataset: {classes: 7}", "network.config.label_dim", "10, but dataset.classes is 7"),
        (GOOD + "dataset: {images: 0}", "dataset.images", "at least 1"),
        (GOOD + "dataset: {images: many}", "dataset.images", "must be of type int, got 'many'"),
        (GOOD + "dataset: {transform: squash}", "dataset.transform", "center-crop"),
        (GOOD + "network: {config: {chanel_mult: [1]}}", "network.config", "chanel_mult: unknown field; did you mean"),
        (GOOD + 'network: {checkpoint: ""}', "network", "either checkpoint"),
        (GOOD + 'network: {checkpoint: "", pretrain: {lr: -1}}', "network.pretrain", "lr must be positive, got -1"),
        (GOOD + "tain: {}", "tain", "did you mean 'train'"),
        (GOOD + "dataset: {image: 3}", "dataset.image", "did you mean 'images'"),
        (GOOD + "name: a\nname: b", "", "name is there twice"),
        (GOOD + "basis: {k: 5}", "basis.kind", "missing"),
        (GOOD + "basis: {kind: pca, cluster_size: 2}", "basis.cluster_size", "pca_per_class"),
        (GOOD + "basis: {kind: pca, k: 1024}", "basis.k", "1023"),
        (GOOD + "basis: {kind: haar}", "basis.kind", "haar"),
        (
            "base: base.yaml\nbasis: {kind: pca}\ntrain: {stage: anisotropic, family: {basis: dct}}",
            "train.family.basis",
            "basis of its own",
        ),
        ("base: base.yaml\ntrain: {stage: isotropic, batch: none}", "train", "batch must be a number"),
        ("base: base.yaml\ntrain: {stage: isotropic, batchsize: 3}", "train", "batchsize is not a field"),
        ("base: base.yaml\ntrain: {stage: isotropic, family: {basis: dct}}", "train", "use the stage anisotropic"),
        ("base: base.yaml\ntrain: {stage: pretrain}", "train.stage", "pretrain"),
        ("base: base.yaml\ntrain: {stage: isotropic, model: x}", "train.model", "elsewhere"),
        (UNCONDITIONAL + "train: {stage: isotropic, family: {per_class: true}}", "train.family.per_class", "label_dim"),
        (UNCONDITIONAL + "basis: {kind: pca_per_class}\ntrain: {stage: anisotropic}", "basis.kind", "label_dim"),
        (GOOD + "fid: {solver: hein}", "fid.solver", "heun"),
        (GOOD + "fid: {baselines: [rk]}", "fid.baselines", "rk"),
        (GOOD + "fid: {variants: [uniform, fine]}", "fid.variants", "fine"),
        (GOOD + "fid: {nfe: [0]}", "fid.nfe", "0"),
        (GOOD + "fid: {seeds: [9-3]}", "fid.seeds", "9-3"),
        (GOOD + "after: other.yaml", "after", "other-edm"),
        (GOOD + "after: mine.yaml", "after", "itself"),
        (GOOD + "after: none.yaml", "", "base.yaml, isotropic.yaml, mine.yaml, other.yaml"),
        (GOOD + "name: Ä", "name", "Ä"),
        ("base: mine.yaml", "base", "own base"),
        ("[1]", "", "mapping"),
    ],
)
def test_mistakes_are_named(folder: Path, entries: str, entry: str, said: str) -> None:
    (folder / "mine.yaml").write_text(entries + "\n")
    with pytest.raises(RecipeError) as raised:
        load([folder / "mine.yaml"])
    assert raised.value.entry == entry
    assert said in raised.value.message


def test_what_is_missing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = str(CONFIGS / "cifar10" / "dct.yaml")
    assert main([recipe, "--data", str(tmp_path), "--device", "go"]) == 1
    assert "downloads/cifar-10-python.tar.gz is missing" in capsys.readouterr().err
    assert main([recipe, "--data", str(tmp_path / "dta")]) == 1
    assert "dta does not exist" in capsys.readouterr().err
    assert not (tmp_path / "dta").exists()


def test_what_is_there_is_held_to_the_recipe(recipes: dict[Path, Recipe]) -> None:
    recipe = recipes[CONFIGS / "cifar10" / "dct.yaml"]

    class Server:
        def __init__(self, **differs: Any) -> None:
            known = {"name": "cifar10", "rows": 50000, "shape": [32, 32, 3], "layout": "HWC", "classes": 10}
            self.found = known | differs

        def call(self, _: str) -> dict[str, Any]:
            return {"datasets": [self.found]}

    def check(**differs: Any) -> None:
        _check_data(Server(**differs), recipe)  # pyright: ignore[reportArgumentType]

    check()
    check(shape=[3, 32, 32], layout="CHW")
    for entry, differs in {
        "resolution": {"shape": [64, 64, 3]},
        "channels": {"shape": [32, 32, 1]},
        "images": {"rows": 49999},
        "classes": {"classes": 0},
    }.items():
        with pytest.raises(RecipeError) as raised:
            check(**differs)
        assert raised.value.entry == f"dataset.{entry}"
    assert _within(
        {"batch": 256, "family": {"basis": "dct"}}, {"batch": 256.0, "family": {"basis": "dct", "k": 16}, "c": 1}
    )
    assert not _within({"family": {"basis": "dct"}}, {"family": {"basis": "haar"}})
    assert not _within([2, 2], [2, 1])


def test_texts_are_as_they_were_written(tmp_path: Path) -> None:
    """YAML's own types, such as 1.10, 010 and dates, are no texts in other words."""
    for text in ("1.10", "010", "1e3", "2026-11-28", "yes", "null", "off", "0x10"):
        (tmp_path / "a.yaml").write_text(
            f"name: {text}\nseed: 3\n"
            f"network: {{name: {text}, config: {{lr: 1e-5, code: 010, day: 2026-11-28, n: 10}}}}\n"
            f"train: {{schedule: {text}, lr: 1e-5, family: {{basis: {text}, k: 4}}}}\n"
            f"fid: {{baselines: [{text}]}}\ntwin: {{name: {text}, seed: 4}}\n"
        )
        recipe = _read(Recipe(tmp_path / "a.yaml"), tmp_path / "a.yaml", ())
        assert (recipe.name, recipe.network.name, recipe.fid.baselines) == (text, text, [text])
        assert recipe.train == {"schedule": text, "lr": 1e-5, "family": {"basis": text, "k": 4}}
        assert recipe.twin == {"name": text, "seed": 4}
        assert recipe.network.config == {"lr": 1e-5, "code": "010", "day": "2026-11-28", "n": 10}
