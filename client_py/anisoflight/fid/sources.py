"""Sources of images: a server's samples and data sets, and files in every format of `anisoflight.data`.

A source returns any range of its images as uint8 batches [n, H, W, C], so that an interrupted run continues.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from ..data import Item, open_source
from ..data.source import named
from ..errors import AnisoflightError, NotFiniteError
from ..images import Pixels, to_uint8
from ..plans.storage import basis_bytes
from ..serving.client import Client
from ..wire.pictures import check_alike
from ..wire.tensors import to_numpy
from .errors import FidError

Array = np.ndarray[Any, Any]

CONVERGED: Mapping[str, Any] = {"solver": "heun", "second_point": "endpoint", "grid": "edm", "steps": 60}
"""Options of Sample for the exact solution of a schedule's path."""
PROBES = 256
"""The first samples of a block of seeds, whose ODE error is measured."""
_PATH = ("schedule", "start", "guidance", "guidance_interval", "guide")  # options of Sample that CONVERGED leaves
_BATCH = 256  # images of files that are handed out at a time


class Source(Protocol):
    """Images that can be counted and read."""

    count: int
    evaluations: Collection[int] = ()
    """NFE that a server counted for the images so far; empty for images that are no samples."""

    def identity(self) -> dict[str, Any]:
        """Everything that the images depend on, as JSON."""
        ...

    def labels(self) -> Array | None:
        """The images' classes [count], if they are known in advance."""
        ...

    def read(self, start: int, stop: int) -> Iterator[Pixels]:
        """Images start … stop−1 in order, in batches of any size [n, H, W, C]."""
        ...

    def ode_errors(self, start: int, stop: int) -> Array:
        """Squared errors of the probes among images start … stop−1; empty for images that are no samples."""
        return np.zeros(0)


def _fields(what: str) -> FidError:
    """The error of values in other units."""
    message = "has float32 in other units, and FID needs images; anisoflight.moments has the distance of any features"
    return FidError(f"{what} {message}", "BAD_IMAGES")


@dataclass
class ServerSamples(Source):
    """Samples of a model for the seeds first … first + count − 1, with options of Sample."""

    client: Client
    model: str
    first: int
    count: int
    options: Mapping[str, Any]
    label: int | None = None
    """The class of all images; None: the server draws it, or there are none."""
    probes: int = 0
    """The first images, whose ODE error is measured."""
    evaluations: Collection[int] = ()

    def __post_init__(self) -> None:
        described = self.client.describe_model(self.model)
        if described.get("normalization"):
            raise _fields(f"model {self.model!r}")
        self.weights = described["hash"]
        if self.probes and self.options.get("S_churn"):
            message = "ode-error needs S_churn = 0: samples with fresh noise follow no exact solution"
            raise FidError(message, "BAD_REQUEST")

    def cost(self, start: int, stop: int) -> int | None:
        """Evaluations for images start … stop−1, at most; None if the server cannot plan them without sampling."""
        (each, converged), probes = self._costs, max(min(stop, self.probes) - start, 0)
        if each is None or (probes and converged is None):
            return None
        return (stop - start) * each + probes * (each + (converged or 0))

    @cached_property
    def _costs(self) -> tuple[int | None, int | None]:
        """Evaluations per image: of a sample, and of the exact solution."""
        return self._cost(self.options), self._cost(self._converged) if self.probes else 0

    def _cost(self, options: Mapping[str, Any]) -> int | None:
        nfe = options.get("nfe")
        if "plan" in options:
            nfe = self._plan["nfe"]
        if nfe is None:
            try:
                nfe = self.client.call("PlanSampler", model=self.model, label=self.label, **options)["nfe"]
            except AnisoflightError:  # the sampler differs by class, or its plan is too long
                return None
        return nfe if options.get("guidance", 1) == 1 else 2 * nfe

    @property
    def _converged(self) -> dict[str, Any]:
        return {**CONVERGED, **{name: self.options[name] for name in _PATH if name in self.options}}

    def identity(self) -> dict[str, Any]:
        seeds = f"{self.first}-{self.first + self.count - 1}"
        known = {"model": self.model, "weights": self.weights, "schedule": self._schedule(), "seeds": seeds}
        if guide := self.options.get("guide"):
            known["guide"] = self.client.describe_model(guide)["hash"]
        sample = {name: value for name, value in self.options.items() if name != "plan"}  # which is in the schedule
        return {**known, "sample": sample, "class": self.label}

    @cached_property
    def _plan(self) -> dict[str, Any]:
        """The plan that is sampled with."""
        return self.client.call("PlanSampler", plan=self.options["plan"])

    def _schedule(self) -> dict[str, Any]:
        if "plan" in self.options:
            known = {name: value for name, value in self._plan.items() if name not in ("provenance", "info", "notes")}
            return {"name": "plan", "hash": hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()}
        named = self.options.get("schedule")
        if named is None:
            named = self.model if self.model in self.client.schedules().index else "edm"
        if not isinstance(named, str) or named == "edm":
            return {"name": named}
        schedule = self.client.schedule(named)
        known = {name: value for name, value in schedule.file.items() if name != "provenance"}
        digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode())
        if (vectors := schedule.vectors()) is not None:
            digest.update(basis_bytes(vectors))
        return {"name": named, "hash": digest.hexdigest()}

    def labels(self) -> None:
        return None

    def read(self, start: int, stop: int) -> Iterator[Pixels]:
        for batch in self._drawn(start, stop, self.options, "uint8"):
            self.evaluations = {*self.evaluations, *np.unique(to_numpy(batch["nfe"])).tolist()}
            yield to_numpy(batch["sample"])

    def ode_errors(self, start: int, stop: int) -> Array:
        """Squared errors of the probes among images start … stop−1, in the mean over pixels in [−1, 1].

        The error of a sample is its distance to the exact solution from the same noise, of the same schedule, start
        and guidance: 60 steps of Heun's method on EDM's grid.
        """
        stop = min(stop, self.probes)
        if start >= stop:
            return np.zeros(0)
        drawn = (self._drawn(start, stop, options, "float32") for options in (self.options, self._converged))
        samples, exact = (np.concatenate([to_numpy(batch["sample"]) for batch in batches]) for batches in drawn)
        return ((samples.astype(np.float64) - exact) ** 2).mean(axis=(1, 2, 3))

    def _drawn(self, start: int, stop: int, options: Mapping[str, Any], dtype: str) -> Iterator[pa.RecordBatch]:
        request = {"model": self.model, "seed": self.first + start, **options, "dtype": dtype, "layout": "HWC"}
        if self.label is None:
            request["n"] = stop - start
        else:
            request["labels"] = [self.label] * (stop - start)
        for message in self.client.stream("Sample", request):
            weights = (message.batch.schema.metadata or {}).get(b"weights", b"").decode()
            if weights not in ("", self.weights):
                message = f"model {self.model!r} was replaced while its samples were drawn; start again"
                raise FidError(message, "BAD_IMAGES")
            if "warning" in message.event:
                raise NotFiniteError(f"model {self.model!r}: {message.event['warning']}")
            if message.batch.num_rows:
                yield message.batch


@dataclass
class ServerDataset(Source):
    """A data set on the server; float32 images are rounded to uint8 as samples are."""

    client: Client
    name: str

    def __post_init__(self) -> None:
        known = self.client.datasets()
        if self.name not in known.index:
            self.client.dataset(self.name, limit=1)  # raises the server's own error
        if "normalization" in known and isinstance(known.loc[self.name, "normalization"], dict):
            raise _fields(f"data set {self.name!r}")
        self.count = int(known.loc[self.name, "rows"])  # pyright: ignore[reportArgumentType]
        self.hash = str(known.loc[self.name, "hash"])

    def identity(self) -> dict[str, Any]:
        """The name, and the hash of images and labels."""
        return {"dataset": self.name, "count": self.count, "hash": self.hash}

    def labels(self) -> Array | None:
        labels = np.concatenate([to_numpy(batch["label"]) for batch in self._batches(0, self.count)])
        return labels if (labels >= 0).all() else None

    def read(self, start: int, stop: int) -> Iterator[Pixels]:
        for batch in self._batches(start, stop):
            column = batch["image"]
            images = to_uint8(to_numpy(column))
            yield np.moveaxis(images, 1, 3) if column.type.dim_names[0] == "C" else images

    def _batches(self, start: int, stop: int) -> Iterator[pa.RecordBatch]:
        request = {"dataset": self.name, "offset": start, "limit": stop - start}
        return (message.batch for message in self.client.stream("Dataset", request) if message.batch.num_rows)


class Files(Source):
    """Images of one shape at a path, with labels if a file lists them."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise FidError(f"there is nothing at {path}; images are a folder or a file of them", "BAD_IMAGES")
        self._source = open_source(path, labels="listed")
        self.count = self._source.count

    def identity(self) -> dict[str, Any]:
        path = self._source.path
        known = {"images": str(path.resolve()), "count": self.count}
        if not path.is_dir():
            return {**known, "bytes": path.stat().st_size, "changed": path.stat().st_mtime_ns}
        names = [item.name for item in self._source.items()]
        ends = [name if (path / name).exists() else name.rpartition(" row ")[0] for name in (names[0], names[-1])]
        stats = [(path / name).stat() for name in ends]
        return {**known, "ends": [(stat.st_size, stat.st_mtime_ns) for stat in stats]}

    def labels(self) -> Array | None:
        if not self._source.labelled:
            return None
        return np.array([item.label for item in self._source.items()])

    def read(self, start: int, stop: int) -> Iterator[Pixels]:
        first = next(iter(self._source.items()))
        reference = self._pixels(first)
        items = islice(self._source.items(), start, stop)
        while batch := list(islice(items, _BATCH)):
            images = [self._pixels(item) for item in batch]
            for item, image in zip(batch, images, strict=True):
                with named(self._source.path, item.name):
                    check_alike(image, reference)
            yield np.stack(images)

    def _pixels(self, item: Item) -> Pixels:
        with named(self._source.path, item.name):
            pixels = item.read()
            if pixels.dtype != np.uint8 or pixels.shape[2] not in (1, 3):
                raise ValueError(f"holds {pixels.dtype} {pixels.shape}; FID sees uint8 of one or three channels")
            return pixels


def server_versions(client: Client) -> dict[str, str]:
    """The version and device of a server, for rows."""
    info = client.info()
    return {"server": info["version"], "device": info["device"]["name"]}
