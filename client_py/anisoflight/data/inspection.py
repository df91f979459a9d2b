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
    sizes: collections.Counter[tuple[int, ...]] = collections.Counter()
    classes: collections.Counter[int] = collections.Counter()
    kinds: set[str] = set()
    labels: list[int] = []
    bad: list[dict[str, str]] = []
    wrong = 0
    moments = np.zeros((3, 0))  # count, mean and sum of squared deviations, by channel
    low, high = np.zeros(0), np.zeros(0)
    digest = hashlib.sha256()
    for item, future in each(source, lambda item: checked(item.read(), own_units=True), "inspect", progress):
        try:
            picture = future.result()
        except (ValueError, OSError) as error:
            wrong += 1
            if len(bad) < MAX_BAD:
                bad.append({"name": item.name, "error": error.reason if isinstance(error, DataError) else str(error)})
            continue
        if not kinds:
            height, width, channels = picture.shape
            is_float, labelled = (str(what).lower() for what in (picture.dtype != np.uint8, source.labelled))
            digest.update(f"{height} {width} {channels} HWC float32={is_float} labels={labelled}\n".encode())
        sizes[picture.shape] += 1
        classes[item.label] += 1
        kinds.add(str(picture.dtype))
        labels.append(item.label)
        digest.update(picture.tobytes())
        if (more := picture.shape[2] - moments.shape[1]) > 0:
            moments = np.pad(moments, ((0, 0), (0, more)))
            low, high = np.pad(low, (0, more), constant_values=np.inf), np.pad(high, (0, more), constant_values=-np.inf)
        _add(moments, picture)
        if picture.dtype != np.uint8:
            n = picture.shape[2]
            low[:n] = np.minimum(low[:n], picture.min((0, 1)))
            high[:n] = np.maximum(high[:n], picture.max((0, 1)))
    seen = moments[:, moments[0] > 0]
    report: dict[str, Any] = {
        "format": source.format,
        "images": sizes.total(),
        "sizes": [
            {"height": height, "width": width, "channels": channels, "images": images}
            for (height, width, channels), images in sorted(sizes.items(), key=lambda size: (-size[1], size[0]))
        ],
        "dtype": "mixed" if len(kinds) > 1 else "".join(kinds),
        "labels": source.labelled,
        "mean": seen[1].tolist(),
        "std": np.sqrt(seen[2] / seen[0]).tolist(),
        "bad": bad,
        "n_bad": wrong,
    }
    if kinds == {"float32"}:
        report["low"], report["high"] = low.tolist(), high.tolist()
    if source.units:
        report["normalization"] = dict(source.units)
    if source.labelled:
        named = dict(enumerate(source.classes))
        report["classes"] = [
            {"label": label, **({"name": named[label]} if label in named else {}), "images": images}
            for label, images in sorted(classes.items())
        ]
    if len(sizes) == len(kinds) == 1 and not wrong:
        digest.update(np.array(labels if source.labelled else [], "<i4").tobytes())
        if source.units:
            digest.update(np.array([*source.units["mean"], *source.units["scale"]], "<f8").tobytes())
        report["hash"] = digest.hexdigest()
    return report


def _add(moments: np.ndarray[Any, Any], picture: np.ndarray[Any, Any]) -> None:
    """Add an image's values to the moments (Chan, Golub and LeVeque's update)."""
    channels = picture.shape[2]
    values = picture.reshape(-1, channels).astype(np.float64)
    if picture.dtype == np.uint8:
        values = values / 127.5 - 1
    seen, n = moments[:, :channels], len(values)
    mean = values.mean(0)
    apart, both = mean - seen[1], seen[0] + n
    seen[2] += ((values - mean) ** 2).sum(0) + apart**2 * seen[0] * n / both
    seen[1] += apart * n / both
    seen[0] = both
