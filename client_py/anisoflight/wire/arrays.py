"""Arrays of numbers and images out of what users have, without a copy where it can be."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import BadRequestError, bad_tensor

_AXES = {
    "N": "n b batch sample image time date number member ensemble index",
    "C": "c channel channels band bands variable component level",
    "H": "h y height lat latitude row rows",
    "W": "w x width lon longitude col cols column columns",
}
_LETTERS = {name: letter for letter, names in _AXES.items() for name in names.split()}


def layout_of(shape: Sequence[int]) -> str:
    """The layout of an image shape without names: HWC when the last size is at most 4, else CHW.

    >>> layout_of((8, 8, 3)), layout_of((3, 32, 32))
    ('HWC', 'CHW')
    """
    return "HWC" if shape[-1] <= 4 else "CHW"


def integers(values: npt.ArrayLike, name: str) -> np.ndarray[Any, np.dtype[np.int32]]:
    """Whole numbers as int32; errors call them by name.

    >>> integers(["cat", "dog"], "labels")
    Traceback (most recent call last):
    anisoflight.errors.BadRequestError: [BAD_TENSOR] labels must be integers, got 'cat'; number the classes from 0
    """
    array = array_of(values, name)
    if array.dtype.kind == "f" and (count := np.isnan(array).sum()):
        raise missing(name, count)
    with np.errstate(invalid="ignore"):
        wrong = array[array != array.astype(np.int32)] if array.dtype.kind in "iubf" else array.reshape(-1)[:1]
    if wrong.size:
        first = wrong.tolist()[0]
        want = "in the range of int32" if isinstance(first, int) else "integers"
        raise bad_tensor(f"{name} must be {want}, got {first!r}; number the classes from 0")
    return array.astype(np.int32)


def array_of(values: Any, name: str, dtype: npt.DTypeLike | None = None) -> np.ndarray[Any, Any]:
    """An array of numbers, without a copy if possible, from arrays of any library, columns of Arrow, pandas and polars,
    Pillow's images, and lists of them.

    A missing value (masked, null, None, NA) is a BadRequestError, because masked entries have numbers, too.

    >>> array_of([np.ma.masked_less([1, 5], 3)], "x")
    Traceback (most recent call last):
    anisoflight.errors.BadRequestError: [BAD_TENSOR] x must have all values, got 1 missing (masked, null, \
    None or NaN); drop those rows, or fill them
    """
    if getattr(getattr(values, "dtype", None), "kind", "") == "O" and np.ndim(values) == 1:  # a column of pandas
        values = list(values)
    if isinstance(values, list | tuple) and not all(map(np.isscalar, values)):
        parts = [array_of(part, name, dtype) for part in values]
        forms = sorted({f"{part.shape}{' of uint8' * (part.dtype == np.uint8)}" for part in parts})
        if len(forms) > 1:
            hint = "; anisoflight.data resizes files" if name == "images" else ""
            raise bad_tensor(f"{name} must be of one form, got {forms[0]} and {forms[1]}{hint}")
        return np.stack(parts)
    source: Any = values
    library = type(source).__module__.partition(".")[0]
    try:
        if library == "torch":
            source = source.detach().cpu()
            half = source.dtype.is_floating_point and source.dtype.itemsize < 4
            source = (source.float() if half else source).numpy()
        elif library == "PIL":
            from .pictures import pixels_of

            source = pixels_of(source)
        elif library in ("pyarrow", "polars"):
            import pyarrow as pa

            from .tensors import to_numpy

            source = to_numpy(pa.chunked_array([source] if isinstance(source, pa.Array) else source), name)
        array = np.asanyarray(source)
        if count := int(np.sum(_empty(array) if array.dtype == object else np.ma.getmask(array))):
            raise missing(name, count)
        return np.asarray(array, dtype)
    except BadRequestError:
        raise
    except (ValueError, TypeError, RuntimeError, LookupError) as error:  # Arrow's are of these
        raise bad_tensor(f"{name} must be numbers, got {type(values).__name__}: {error}") from None


def _empty(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where objects are None, NaN or NA."""
    import pandas as pd

    return pd.isna(array)


def missing(name: str, count: int) -> BadRequestError:
    """The error for values that are not there."""
    kinds = "masked, null, None or NaN"
    return bad_tensor(f"{name} must have all values, got {count} missing ({kinds}); drop those rows, or fill them")


def images_of(images: Any, name: str, layout: str | None = None) -> tuple[np.ndarray[Any, Any], str | None]:
    """Images [n, H, W, C], [n, C, H, W] or grey [n, H, W] as an array of four axes, and their layout if it is known.

    Axes with names are moved: rows first, height before width, a missing channel last. Height and width need known
    names; one other axis may have any name, and takes the role that is left.
    """
    if layout not in (None, "HWC", "CHW"):
        raise BadRequestError(f"layout must be HWC or CHW, got {layout!r}")
    array, names = array_of(images, name), _names(images)
    if array.dtype.kind not in "biufc":
        got = repr(array.reshape(-1).tolist()[:1])[1:-1].partition("\n")[0][:60]
        hint = "python -m anisoflight.data stores files"
        raise bad_tensor(f"{name} must be pixels, not paths or encoded images, got {got}; {hint}")
    if names is not None:
        array, named = _moved(array, names, name)
        if layout not in (None, named):
            raise BadRequestError(f"layout must be {named}, as the axes of {name} say, got {layout}")
        layout = named
    elif array.ndim == 3 and array.shape[-1] > 4 and layout != "CHW":
        array, layout = array[..., None], "HWC"
    if array.ndim != 4 or 0 in array.shape[1:]:
        hint = f"; put [{name}] for one image" if array.ndim in (2, 3) else ""
        raise bad_tensor(
            f"{name} must have the shape [n, H, W, C] or [n, C, H, W], or [n, H, W] of grey, got {array.shape}{hint}"
        )
    return array, layout


def _moved(array: np.ndarray[Any, Any], names: tuple[str, ...], name: str) -> tuple[np.ndarray[Any, Any], str]:
    """Images with four axes in the order of their names, and their layout."""
    wanted = "NHW" if len(names) == 3 else "NCHW"
    letters = [_LETTERS.get(axis.lower(), "") for axis in names]
    missing = [letter for letter in wanted if letter not in letters]
    if letters.count("") == 1 and missing in (["N"], ["C"]):
        letters[letters.index("")] = missing[0]
    if sorted(letters) != sorted(wanted):
        got = f"got ({', '.join(names)}); rename or stack them, or drop the names"
        raise bad_tensor(f"{name} must have axes with names such as (time, channel, lat, lon) or (n, y, x), {got}")
    layout = "CHW" if "C" in letters and letters.index("C") < max(map(letters.index, "HW")) else "HWC"
    array = array.transpose([letters.index(letter) for letter in "N" + layout if letter in letters])
    return array if len(names) == 4 else array[..., None], layout


def _names(images: Any) -> tuple[str, ...] | None:
    """The names of axes of Arrow, xarray (dims), netCDF4 (dimensions) or torch (names); None without names."""
    if isinstance(images, list | tuple):
        found = {_names(image) for image in images if not isinstance(image, list | tuple)}
        inner = found.pop() if found else None
        if found:
            raise bad_tensor(f"images must have the same names of axes, got {inner} and {found.pop()}")
        return ("n", *inner) if inner else None
    if names := getattr(getattr(images, "type", None), "dim_names", None):
        return ("n", *names)
    for attribute in ("dims", "dimensions", "names"):
        names = getattr(images, attribute, None)
        if isinstance(names, tuple) and any(isinstance(axis, str) and not axis.startswith("dim_") for axis in names):
            return tuple(map(str, names))
    return None
