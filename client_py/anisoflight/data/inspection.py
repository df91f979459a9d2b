"""A report of a source: sizes, classes, moments, T and c of schedules, bad files."""

import collections
import hashlib
from typing import Any

import numpy as np

from ..wire.pictures import checked
from .conversion import each
from .scale import Scale
from .source import DataError, Source, named

Array = np.ndarray[Any, Any]

MAX_BAD = 100  # images that a report names


def inspect(source: Source, progress: bool = True) -> dict[str, Any]:
    """Decode every image; returns a report that JSON can hold.

    mean and std are by channel, of values in [−1, 1], or of floats in other units, for which low and high are the least
    and the greatest value. They are missing if images differ in their channels. hash, that of the data set on a server,
    is missing if images differ in form or cannot be read. T and c are the defaults of schedules that are made or
    trained on the data (`Scale`); they are missing, too, if images are all alike.

    >>> from anisoflight.data import open_source
    >>> np.savez(folder / "grey.npz", images=np.array([0, 255], np.uint8).repeat(64).reshape(2, 8, 8), labels=[1, 0])
    >>> with open_source(folder / "grey.npz") as source:
    ...     report = inspect(source)
    >>> report["images"], report["mean"], report["std"], report["classes"]
    (2, [0.0], [1.0], [{'label': 0, 'images': 1}, {'label': 1, 'images': 1}])
    >>> round(report["T"]), round(report["c"])
    (964, 64)
    """
    sizes: collections.Counter[tuple[int, ...]] = collections.Counter()
    kinds: set[str] = set()
    labels: list[int] = []
    seen: set[int] = set()
    bad: list[dict[str, str]] = []
    wrong = 0
    moments: dict[int, Channels] = collections.defaultdict(Channels)
    digest, scale = hashlib.sha256(), Scale(source.count, source.units)
    pictures = each(source, lambda item: checked(item.read(), own_units=True), "inspect", progress)
    for number, (item, future) in enumerate(pictures):
        seen.add(item.label)
        try:
            with named(source.path, item.name):
                picture = future.result()
        except DataError as error:
            wrong += 1
            if len(bad) < MAX_BAD:
                bad.append({"name": item.name, "error": error.reason})
            continue
        height, width, channels = picture.shape
        if not sizes:
            is_float, labelled = (str(what).lower() for what in (picture.dtype != np.uint8, source.labelled))
            digest.update(f"{height} {width} {channels} HWC float32={is_float} labels={labelled}\n".encode())
        sizes[picture.shape] += 1
        kinds.add(str(picture.dtype))
        labels.append(item.label)
        digest.update(picture.tobytes())
        moments[channels].add(picture)
        scale.add(number, picture)
    report: dict[str, Any] = {
        "format": source.format,
        "images": sizes.total(),
        "sizes": [
            dict(zip(("height", "width", "channels", "images"), (*size, images), strict=True))
            for size, images in sorted(sizes.items(), key=lambda found: (-found[1], found[0]))
        ],
        "dtype": "mixed" if len(kinds) > 1 else "".join(kinds),
        "labels": source.labelled,
        "ignored": list(source.ignored),
        "bad": bad,
        "n_bad": wrong,
    }
    if len(moments) == 1:
        (found,) = moments.values()
        report |= {"mean": found.mean.tolist(), "std": np.sqrt(found.squares / found.count).tolist()}
        if kinds == {"float32"}:
            report |= {"low": found.low.tolist(), "high": found.high.tolist()}
    if source.units:
        report["normalization"] = dict(source.units)
    if source.labelled:
        names = dict(enumerate(source.classes))
        counts = {**dict.fromkeys([*names, *seen], 0), **collections.Counter(labels)}
        report["classes"] = [
            {"label": label, **({"name": names[label]} if label in names else {}), "images": images}
            for label, images in sorted(counts.items())
        ]
    if len(sizes) == len(kinds) == 1 and not wrong:
        report |= scale.defaults()
        digest.update(np.array(labels if source.labelled else [], "<i4").tobytes())
        if source.units:
            digest.update(np.array([*source.units["mean"], *source.units["scale"]], "<f8").tobytes())
        report["hash"] = digest.hexdigest()
    return report


class Channels:
    """Running moments of the values of each channel (Chan, Golub and LeVeque's update)."""

    def __init__(self) -> None:
        self.count = 0
        self.mean, self.squares, self.low, self.high = (np.array(start) for start in (0.0, 0.0, np.inf, -np.inf))

    def add(self, picture: Array) -> None:
        values = picture.reshape(-1, picture.shape[2]).astype(np.float64)
        self.low, self.high = np.minimum(self.low, values.min(axis=0)), np.maximum(self.high, values.max(axis=0))
        if picture.dtype == np.uint8:
            values = values / 127.5 - 1
        total, mean = self.count + len(values), values.mean(axis=0)
        delta = mean - self.mean
        self.squares = self.squares + ((values - mean) ** 2).sum(axis=0)
        self.squares += delta**2 * self.count * len(values) / total
        self.mean = self.mean + delta * len(values) / total
        self.count = total
