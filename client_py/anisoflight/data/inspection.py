"""What there is in a source: sizes, classes, moments, bad files."""

from __future__ import annotations

import collections
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from .conversion import each
from .pictures import checked
from .source import DataError

if TYPE_CHECKING:
    from .source import Source

    Array = np.ndarray[Any, Any]

MAX_BAD = 100  # images that a report names


def inspect(source: Source, progress: bool = True) -> dict[str, Any]:
    """Decode every image; a report that JSON can hold.

    mean and std are by channel, of values in [−1, 1], or of floats in units of their own, for which low and high tell
    the least and the greatest value. hash is that of the data set on a server; it is left out where
    images differ in form or cannot be read.

    >>> from anisoflight.data import open_source
    >>> np.savez(folder / "grey.npz", images=np.array([0, 255], np.uint8).repeat(16).reshape(2, 4, 4), labels=[1, 0])
    >>> with open_source(folder / "grey.npz") as source:
    ...     report = inspect(source)
    >>> report["images"], report["mean"], report["std"], report["classes"]
    (2, [0.0], [1.0], [{'label': 0, 'images': 1}, {'label': 1, 'images': 1}])
    """
    sizes: collections.Counter[tuple[tuple[int, ...], str]] = collections.Counter()
    labels: list[int] = []
    bad: list[dict[str, str]] = []
    wrong = 0
    channels: dict[int, Channel] = collections.defaultdict(Channel)
    digest = hashlib.sha256()
    for item, future in each(source, lambda item: checked(item.read(), own_units=True), "inspect", progress):
        try:
            picture = future.result()
        except (ValueError, OSError) as error:
            wrong += 1
            if len(bad) < MAX_BAD:
                bad.append({"name": item.name, "error": error.reason if isinstance(error, DataError) else str(error)})
            continue
        if not sizes:
            height, width, depth = picture.shape
            is_float, labelled = (str(what).lower() for what in (picture.dtype != np.uint8, source.labelled))
            digest.update(f"{height} {width} {depth} HWC float32={is_float} labels={labelled}\n".encode())
        sizes[picture.shape, str(picture.dtype)] += 1
        labels.append(item.label)
        digest.update(picture.tobytes())
        for channel in range(picture.shape[2]):
            channels[channel].add(picture[..., channel])
    kinds = {kind for _, kind in sizes}
    by_size: collections.Counter[tuple[int, ...]] = collections.Counter()
    for (size, _), images in sizes.items():
        by_size[size] += images
    report: dict[str, Any] = {
        "format": source.format,
        "images": sizes.total(),
        "sizes": [
            dict(zip(("height", "width", "channels", "images"), (*size, images), strict=True))
            for size, images in sorted(by_size.items(), key=lambda found: (-found[1], found[0]))
        ],
        "dtype": "mixed" if len(kinds) > 1 else "".join(kinds),
        "labels": source.labelled,
        "mean": [channel.mean for channel in channels.values()],
        "std": [float(np.sqrt(channel.squares / channel.count)) for channel in channels.values()],
        "bad": bad,
        "n_bad": wrong,
    }
    if kinds == {"float32"}:
        report["low"] = [channel.low for channel in channels.values()]
        report["high"] = [channel.high for channel in channels.values()]
    if source.units:
        report["normalization"] = dict(source.units)
    if source.labelled:
        names = dict(enumerate(source.classes))
        report["classes"] = [
            {"label": label, **({"name": names[label]} if label in names else {}), "images": images}
            for label, images in sorted(collections.Counter(labels).items())
        ]
    if len(sizes) == 1 and not wrong:
        digest.update(np.array(labels if source.labelled else [], "<i4").tobytes())
        if source.units:
            digest.update(np.array([*source.units["mean"], *source.units["scale"]], "<f8").tobytes())
        report["hash"] = digest.hexdigest()
    return report


class Channel:
    """Running moments of the values of a channel (Chan, Golub and LeVeque's update)."""

    def __init__(self) -> None:
        self.count, self.mean, self.squares = 0, 0.0, 0.0
        self.low, self.high = np.inf, -np.inf

    def add(self, plane: Array) -> None:
        values = plane.astype(np.float64)
        self.low, self.high = min(self.low, float(values.min())), max(self.high, float(values.max()))
        if plane.dtype == np.uint8:
            values = values / 127.5 - 1
        total, mean = self.count + values.size, float(values.mean())
        apart = mean - self.mean
        self.squares += float(((values - mean) ** 2).sum()) + apart**2 * self.count * values.size / total
        self.mean += apart * values.size / total
        self.count = total
