"""Recipes: a file over its base, checked before anything starts."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml

from ..data.transforms import TRANSFORMS
from ..errors import AnisoflightError, BadRequestError, NotFoundError
from ..files import path_of
from ..files.temporary import TemporaryFolder
from ..serving.client import Client
from ..serving.local import model_report, serve

VARIANTS = ("uniform", "edm", "midpoint")
"""Further rows of Heun's method: the original network uniform in t of EDM's schedule; EDM's noise levels; and the
midpoint form."""
FORMATS = ("cifar10-batches", "png-folders", "jpeg-folders", "edm-zip")
"""The formats of the real images: CIFAR-10's binary batches, folders as AFHQv2's and ImageNet's, FFHQ's zip of EDM."""
PER_CLASS = "pca_per_class"
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,31}")
_BLOCK = re.compile(r"([0-9]+)-([0-9]+)")
_NOT_ENTRIES = ("file", "parent")
_NO_CLASSES = "the network knows no classes (network.config.label_dim is 0)"


class RecipeError(AnisoflightError, ValueError):
    """A mistake in a recipe, or data that do not fit it; names the file and the entry."""

    def __init__(self, file: Path | str, entry: str, message: str) -> None:
        super().__init__(f"recipe {file}: {entry}: {message}" if entry else f"recipe {file}: {message}", "BAD_RECIPE")
        self.entry = entry

    def __reduce__(self) -> tuple[Any, ...]:
        return AnisoflightError, (self.message, self.code)


@dataclass(frozen=True)
class Dataset:
    """The images. The entry `from` is the field `from_`."""

    source: str = ""  # file or folder to convert, as it was downloaded
    from_: str = ""  # where to get the source, for people
    under: str = ""  # the folder of the source whose images alone are read, such as train
    generate: str = ""  # of a twin: the format, one of FORMATS, in which images are generated
    transform: str = ""  # how images become square; default: they are resized
    labels: str = ""  # auto (default), folder or none
    images: int = 0
    resolution: int = 0  # height and width after the conversion
    channels: int = 0
    classes: int = 0  # 0: without labels


@dataclass(frozen=True)
class Network:
    """The initial network: a checkpoint, or a new one."""

    name: str = ""
    checkpoint: str = ""  # pickle of EDM's
    from_: str = ""  # where to get the checkpoint, for people
    config: dict[str, Any] = field(default_factory=dict)  # EDM's keyword arguments
    pretrain: dict[str, Any] = field(default_factory=dict)  # without a checkpoint: settings of the run that trains it


@dataclass(frozen=True)
class Basis:
    """The basis that is made from the data set."""

    kind: str = ""  # pca or pca_per_class; empty: none is made
    k: int = 0  # dimensions of the first subspace for each channel; default: a quarter of the pixels
    cluster_size: int = 0  # of pca_per_class: the number of consecutive classes that share components


@dataclass(frozen=True)
class Fid:
    """What is sampled and compared with the data set."""

    solver: str = ""
    second_point: str = ""  # of heun
    nfe: list[int] = field(default_factory=list)
    seeds: list[str] = field(default_factory=list)  # blocks FROM-TO, a distance for each
    baselines: list[str] = field(default_factory=list)  # solvers of the network as it was, on the literature's grids
    variants: list[str] = field(default_factory=list)  # of VARIANTS

    @property
    def counts(self) -> list[int]:
        """The number of samples of each block of seeds."""
        found = [_BLOCK.fullmatch(str(block)) for block in self.seeds]
        return [int(block[2]) - int(block[1]) + 1 if block else 0 for block in found]


@dataclass(frozen=True)
class Recipe:
    """One method on one data set; the fields are the entries of its YAML file."""

    file: Path
    base: str = ""  # a file, next to this one, whose entries hold unless this one has them
    name: str = ""  # of the data set, and first part of the models' names
    seed: int = 0  # of all runs; one that is not 0 is the last part of the models' names
    dataset: Dataset = field(default_factory=Dataset)
    network: Network = field(default_factory=Network)
    after: str = ""  # the recipe, next to this one, whose model the stage starts from
    basis: Basis = field(default_factory=Basis)
    train: dict[str, Any] = field(default_factory=dict)  # settings of the run that learns the schedule
    fid: Fid = field(default_factory=Fid)
    twin: dict[str, Any] = field(default_factory=dict)  # entries of the scaled-down twin that differ
    parent: Recipe | None = None  # of `after`

    @property
    def method(self) -> str:
        return self.file.stem

    @property
    def model(self) -> str:
        """The name of the run and of the model."""
        return f"{self.name}-{self.method}{self._suffix}"

    @property
    def network_model(self) -> str:
        return f"{self.name}-{self.network.name}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return f"-s{self.seed}" if self.seed else ""

    @property
    def basis_name(self) -> str:
        """The name of the basis, shared by recipes with the same basis."""
        kind, k, size = self.basis.kind, self.basis.k, self.basis.cluster_size
        name = f"{self.name}-{kind.replace('pca', 'components').replace('_', '-')}"
        return name + (f"-{k}" if k else "") + (f"-by-{size}" if size > 1 else "")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run that learns the schedule."""
        start = self.parent.model if self.parent else self.network_model
        family = {"family": {**self.train.get("family", {}), "basis": self.basis_name}} if self.basis.kind else {}
        return {**self.train, **family, **self._seed, "dataset": self.name, "model": start}

    @property
    def pretrain_settings(self) -> dict[str, Any]:
        """The settings of the run that trains the network."""
        base = {"stage": "pretrain", "dataset": self.name, "network": self.network.config}
        return {**self.network.pretrain, **self._seed, **base}

    @property
    def _seed(self) -> dict[str, Any]:
        return {"seed": self.seed} if self.seed else {}

    @property
    def lineage(self) -> list[Recipe]:
        """The recipes before this one, then itself."""
        return [*(self.parent.lineage if self.parent else []), self]

    def error(self, entry: str, message: str) -> RecipeError:
        return RecipeError(self.file, entry, message)


Section = TypeVar("Section", Recipe, Dataset, Network, Basis, Fid)


class _Loader(yaml.SafeLoader):
    """Refuses duplicate keys in mappings."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    keys = [key.value for key, _ in node.value]
    if twice := {key for key in keys if keys.count(key) > 1}:
        raise yaml.constructor.ConstructorError(None, None, f"{sorted(twice)[0]} is there twice", node.start_mark)
    return loader.construct_mapping(node, deep=True)


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
# As in YAML 1.2 and in files of the server: 1e-5 is a number; 010, yes and 2026-11-28 are texts.
_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("merge", "<<", "<"),
    ("null", "~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
     "-+.0123456789"),
):  # fmt: skip
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), list(_first))


def _as_written(section: type, entries: Any, written: Any) -> None:
    """Give the entries that are texts, and names in settings, the text that was written, such as 1.10 or null."""
    for f in fields(section) if isinstance(entries, dict) and isinstance(written, dict) else ():
        name = f.name.rstrip("_")
        if name not in entries:
            continue
        if name == "twin" or is_dataclass(f.default_factory):
            _as_written(Recipe if name == "twin" else f.default_factory, entries[name], written[name])  # pyright: ignore
        elif f.type == "list[str]" or (f.type == "str" and isinstance(written[name], str)):
            entries[name] = written[name] or entries[name]
        elif f.type.startswith("dict"):
            _names_as_written(entries[name], written[name])


def _names_as_written(settings: Any, written: Any) -> None:
    """Give the names in settings, those of stored things, the text that was written."""
    for key in settings if isinstance(settings, dict) and isinstance(written, dict) else ():
        if key in ("basis", "dataset", "guide", "init", "model", "schedule") and isinstance(written.get(key), str):
            settings[key] = written[key] or settings[key]
        _names_as_written(settings[key], written.get(key))


def load(files: Sequence[Path | str], twin: bool = False, seed: int | None = None) -> list[Recipe]:
    """The recipes, or their scaled-down twins, and those that they start from; a mistake is a RecipeError. A seed
    replaces that of the files.
    """
    recipes = [_load(path_of(file), twin, seed, ()) for file in files]
    with TemporaryFolder() as folder, serve(data=folder.path / "data", arguments=["--device", "go"]) as client:
        for step in {step.file: step for recipe in recipes for step in recipe.lineage}.values():
            for fits, entry, message in _checks(step, client):
                if not fits:
                    raise step.error(entry, message)
    return recipes


def _load(file: Path, twin: bool, seed: int | None, visited: tuple[Path, ...]) -> Recipe:
    if file in visited:
        raise RecipeError(file, "after", "it starts from itself")
    recipe = _read(Recipe(file), file, ())
    if twin:
        if not recipe.twin:
            raise recipe.error("twin", "is missing: the recipe has no scaled-down twin")
        recipe = _merged(recipe, recipe.twin, file, "twin.")
    if seed is not None:
        recipe = replace(recipe, seed=seed)
    if recipe.after:
        recipe = replace(recipe, parent=_load(file.with_name(recipe.after), twin, seed, (*visited, file)))
    return recipe


def _read(recipe: Recipe, file: Path, visited: tuple[Path, ...]) -> Recipe:
    """The recipe with the entries of a file, over those of its base."""
    if file in visited:
        raise recipe.error("base", "it is its own base")
    try:
        text = file.read_text(encoding="utf-8")
        entries = yaml.load(text, _Loader) or {}
        _as_written(Recipe, entries, yaml.load(text, yaml.BaseLoader))
    except FileNotFoundError:
        files = ", ".join(sorted(path.name for path in file.parent.glob("*.yaml")))
        hint = f"; that folder has {files}" if files else ""
        raise RecipeError(file, "", f"there is no such file{hint}") from None
    except yaml.YAMLError as error:
        raise RecipeError(file, "", " ".join(str(error).split())) from None
    if not isinstance(entries, dict):
        raise RecipeError(file, "", "it must be a mapping of entries")
    if base := entries.get("base"):
        recipe = _read(recipe, file.with_name(str(base)), (*visited, file))
    return _merged(recipe, entries, file, "")


def _merged(section: Section, entries: dict[str, Any], file: Path, prefix: str) -> Section:
    """A section with new entries: mappings are merged, lists replaced."""
    names = {f.name.rstrip("_"): f.name for f in fields(section) if f.name not in _NOT_ENTRIES}
    changed: dict[str, Any] = {}
    for key, value in entries.items():
        if key not in names:
            similar = difflib.get_close_matches(str(key), names, 1)
            hint = f"did you mean {similar[0]!r}?" if similar else f"the entries are {', '.join(names)}"
            raise RecipeError(file, f"{prefix}{key}", f"there is no such entry; {hint}")
        current = getattr(section, names[key])
        expected = dict if is_dataclass(current) else type(current)
        if value is None:
            continue
        if type(value) is not expected:
            raise RecipeError(file, f"{prefix}{key}", f"must be of type {expected.__name__}, got {value!r}")
        if is_dataclass(current):
            value = _merged(current, value, file, f"{prefix}{key}.")  # pyright: ignore[reportArgumentType]
        elif expected is dict:
            value = {**current, **value}
        changed[names[key]] = value
    return replace(section, **changed)


Check = tuple[object, str, str]
"""Whether an entry fits, the entry, and the error message."""


def _checks(r: Recipe, client: Client) -> Iterator[Check]:
    for entry, name in (("name", r.name), ("", r.method), ("network.name", r.network.name)):
        yield _NAME.fullmatch(name), entry, f"must consist of a-z, 0-9, dot, dash and underscore, got {name!r}"
    d, b, f, family = r.dataset, r.basis, r.fid, r.train.get("family", {})
    for entry, least in (("images", 1), ("resolution", 1), ("channels", 1), ("classes", 0)):
        value = getattr(d, entry)
        yield value >= least, f"dataset.{entry}", f"must be at least {least}, got {value}"
    for entry, value, choices in (
        ("dataset.transform", d.transform, TRANSFORMS),
        ("dataset.generate", d.generate, FORMATS),
        ("basis.kind", b.kind, ("pca", PER_CLASS)),
    ):
        yield not value or value in choices, entry, f"must be one of {', '.join(choices)}, got {value!r}"
    yield d.source or d.generate, "dataset.source", "is missing: the file or folder with the images, as downloaded"

    either = "must have either checkpoint, a pickle of EDM's, or pretrain, the settings that train the network"
    yield bool(r.network.checkpoint) != bool(r.network.pretrain), "network", either
    config = network_report(r)["config"]
    for name, entry in (("img_resolution", "resolution"), ("img_channels", "channels"), ("label_dim", "classes")):
        have, want = config[name], getattr(d, entry)
        unconditional = name == "label_dim" and not have
        yield have == want or unconditional, f"network.config.{name}", f"{have}, but dataset.{entry} is {want}"
    have, want = (r.parent or r).network_model, r.network_model
    message = f"{r.after} starts from the network {have}, this recipe from {want}; give both the same base"
    yield have == want, "after", message

    classes, pixels = config["label_dim"], d.resolution**2
    yield b.kind or not (b.k or b.cluster_size), "basis.kind", "is missing; choose pca or pca_per_class"
    yield classes or b.kind != PER_CLASS, "basis.kind", f"must be pca, got {b.kind!r}; {_NO_CLASSES}"
    yield 0 <= b.k < pixels, "basis.k", f"must be from 1 to {pixels - 1}, or 0 for a quarter of the pixels, got {b.k}"
    yield b.kind == PER_CLASS or not b.cluster_size, "basis.cluster_size", "goes with kind pca_per_class only"
    message = f"must be at most the number of classes, {d.classes}, got {b.cluster_size}"
    yield 0 <= b.cluster_size <= d.classes, "basis.cluster_size", message

    for entry, given in (("train", r.train), ("network.pretrain", r.network.pretrain)):
        for name in ("dataset", "model", "network", "name", "replace"):
            yield name not in given, f"{entry}.{name}", "must be left out: the recipe says it elsewhere"
    yield isinstance(family, dict), "train.family", f"must be a mapping, got {family!r}"
    omit = "must be left out: the recipe makes a basis of its own"
    yield not (b.kind and family.get("basis")), "train.family.basis", omit
    yield classes or not family.get("per_class"), "train.family.per_class", f"must be false; {_NO_CLASSES}"
    message = "must be isotropic or anisotropic; the settings of pretrain are an entry of network"
    yield r.train.get("stage") != "pretrain", "train.stage", message
    # The server checks settings before it looks for the data set, of which the new folder has none.
    yield _accepted(client, "train", "CreateRun", name="recipe", **r.settings)
    if r.network.pretrain:
        yield _accepted(client, "network.pretrain", "CreateRun", name="recipe", **r.pretrain_settings)

    for entry, solver in [("fid.solver", f.solver), *(("fid.baselines", solver) for solver in f.baselines)]:
        plan = {"steps": 6, "schedule": "edm", "sigma_min": 0.002, "sigma_max": 80}
        yield _accepted(client, entry, "PlanSampler", solver=solver, **plan)
    numbers = f.nfe and all(isinstance(n, int) and n > 0 for n in f.nfe)
    yield numbers, "fid.nfe", f"must list numbers of evaluations of the network, got {f.nfe}"
    blocks = f.seeds and min(f.counts) > 0
    yield blocks, "fid.seeds", f"must list blocks FROM-TO such as 0-49999, got {f.seeds}"
    message = f"must be of {', '.join(VARIANTS)}, got {f.variants}"
    yield set(f.variants) <= set(VARIANTS), "fid.variants", message


def _accepted(client: Client, entry: str, operation: str, **request: Any) -> Check:
    """Whether the server accepts a request; its message names the field."""
    try:
        client.call(operation, **request)
    except NotFoundError:
        pass
    except BadRequestError as error:
        return False, entry, error.message
    return True, entry, ""


def network_report(recipe: Recipe) -> dict[str, Any]:
    """What the program says of network.config."""
    with TemporaryFolder() as folder:
        (folder.path / "config.json").write_text(json.dumps(recipe.network.config), encoding="utf-8")
        report = model_report(folder.path)
    if "config" not in report:
        raise recipe.error("network.config", report["faults"][0]["reason"])
    return report
