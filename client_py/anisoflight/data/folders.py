"""Encoded images with labels, in a folder, or in a zip as StyleGAN and EDM write it, or an .npz."""

import collections
import csv
import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import IO

from ..images import LABELS, shortlist
from ..wire.pictures import HEAD, MAX_ENCODED, OTHERS, SUFFIXES, Picture, decoded, is_picture, read_at_most
from . import arrays, tables
from .source import DataError, Item, Source, named

FILE = "dataset.json"
METADATA = ("metadata.jsonl", "metadata.csv", "labels.csv")
"""Lists of file names and labels next to images, as ImageFolder has them."""
_MAX_LIST = 1 << 28
_SPLITS = {"train", "test", "val", "valid", "validation"}
_OF_SYSTEMS = {
    "__macosx", "@eadir", "#recycle", "@recycle", "@recently-snapshot", "$recycle.bin", "recycler", "lost+found",
    "system volume information", "thumbs.db", "desktop.ini",
}  # fmt: skip
_SHARDS = (".parquet", ".arrow", ".feather")

Opener = Callable[[str], IO[bytes]]
Labels = tuple["list[int] | None", "Sequence[str]"]
"""Labels of images, None if there are none, and the names of classes."""


def hidden(name: str) -> bool:
    """Whether a desktop, a NAS or a program made the file or folder for its own use."""
    return name.lstrip(".") not in ("", name) or name.lower() in _OF_SYSTEMS


def _split_ignored(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Files that may be read and folders of which nothing is, and what is ignored: these folders, hidden folders and
    what is in them, and hidden images.

    >>> _split_ignored(["a/1.png", "a/.cache/1.png", "__MACOSX/a/._1.png", "a/._1.png", "b/.DS_Store"])
    (['a/1.png', 'b/'], ['__MACOSX', 'a/._1.png', 'a/.cache', 'b'])
    """
    readable, ignored = set(), set()
    for name in names:
        parts = name.split("/")
        depth = next((i for i, part in enumerate(parts, 1) if hidden(part)), 0)
        readable.add("/".join([*parts[: depth - 1], ""]) if depth else name)
        if depth and (depth < len(parts) or _is_picture(name)):
            ignored.add("/".join(parts[:depth]))
    files = sorted(readable - {"", "/"})
    files = [name for name, after in pairwise([*files, ""]) if not (name.endswith("/") and after.startswith(name))]
    return files, sorted(ignored | {name[:-1] for name in files if name.endswith("/")})


def _is_picture(name: str) -> bool:
    return name.lower().endswith((*SUFFIXES, *OTHERS))


def folder(path: Path, rule: str, part: str = "") -> Source:
    """A folder of images and folders, in the order of their paths, or of Parquet files that begin with `part`."""

    def raised(error: OSError) -> None:
        raise error

    def opener(name: str) -> IO[bytes]:
        return (path / name).open("rb")

    names, special = [], []
    for directory, folders, files in os.walk(path, onerror=raised, followlinks=True):
        within = Path(directory).relative_to(path)
        closed = {name for name in folders if hidden(name)}
        folders[:] = set(folders) - closed
        for name in folders:
            inside = Path(directory, name).absolute()
            if inside.is_symlink() and inside.resolve() in map(Path.resolve, inside.parents):
                raise DataError(path, (within / name).as_posix(), "is a link to a folder that holds it; remove it")
        names += [f"{(within / name).as_posix()}/" for name in closed]
        names += [] if within == Path() else [f"{within.as_posix()}/"]
        for name in files:
            inside = (within / name).as_posix()
            is_file = Path(directory, name).is_file() or (_is_picture(name) and not Path(directory, name).exists())
            (names if is_file else special).append(inside)
    readable, ignored = _split_ignored(names)
    pictures = _pictures(path, readable, opener)
    shards = [name for name in readable if name.lower().endswith(_SHARDS) and name.startswith(part)]
    if shards and not pictures:
        return tables.shards(path, _of_one_part(path, shards), ignored, rule)
    if part:
        raise DataError(path / part, "", "is no folder; under must be one of those in the folder")
    return _encoded(path, "folder of images", readable, pictures, [*ignored, *special], opener, rule)


def _pictures(path: Path, files: Sequence[str], opener: Opener) -> list[str]:
    """The files that are images."""

    def head(name: str) -> bytes:
        with opener(name) as file:
            return file.read(HEAD)

    found = []
    for name in files:
        with named(path, name):
            if not name.endswith("/") and is_picture(name, partial(head, name)):
                found.append(name)
    return found


def _of_one_part(path: Path, shards: list[str]) -> list[str]:
    """The Parquet files, such as data/train-00000-of-00002.parquet, if they are of one part of a data set."""
    parts = {part: name for name in shards for part in re.split("[^a-z]", name.lower()) if part in _SPLITS}
    if len(parts) > 1:
        one, name = max(parts.items())
        under = name[: name.lower().index(one) + len(one)]
        raise DataError(path, "", f"has the parts {', '.join(sorted(parts))}; --under {under} reads one of them")
    return shards


def archive(path: Path, rule: str, layout: str | None = None, under: str = "") -> Source:
    """A zip of images, only of its folder `under` if that is given, or an .npz."""
    with named(path):
        opened = zipfile.ZipFile(path)
    try:
        entries: dict[str, zipfile.ZipInfo] = {}
        for info in opened.infolist():
            name = info.filename
            if "\\" in name or name.startswith("/") or not set(name.split("/")[:-1]).isdisjoint(("", ".", "..")):
                raise DataError(path, name, "is no name in a folder; names are relative and never lead out of it")
            if name in entries:
                raise DataError(path, name, "is there twice")
            entries[name] = info
        if under:
            within = f"{under}/"
            entries = {name.removeprefix(within): entries[name] for name in entries if name.startswith(within)}
            if not entries:
                raise DataError(path, under, "is no folder in this zip")
        readable, ignored = _split_ignored(name for name in entries if name)

        def opener(name: str) -> IO[bytes]:
            return opened.open(entries[name])

        pictures = _pictures(path, readable, opener)
        if not pictures and any(name.endswith(".npy") for name in readable):
            return arrays.npz(path, opened, readable, rule, layout)
        return _encoded(path, "zip of images", readable, pictures, ignored, opener, rule, opened.close)
    except BaseException:
        opened.close()
        raise


def _encoded(
    path: Path,
    form: str,
    files: Sequence[str],
    names: Sequence[str],
    ignored: Sequence[str],
    opener: Opener,
    rule: str,
    close: Callable[[], None] = lambda: None,
) -> Source:
    def read(name: str, most: int) -> bytes:
        with opener(name) as file:
            return read_at_most(file, most)

    if not names:
        there = [name for name in files if name != FILE] or ignored
        raise DataError(path, "", f"holds no PNG, JPEG, WebP or BMP images, but {shortlist(there)}")
    lists = [name for name in (FILE, *METADATA) if name in files]
    listed, reason = None, ""
    with named(path, lists[0] if lists else ""):
        if lists and rule not in ("folder", "none"):
            listed = read(lists[0], _MAX_LIST)
            if lists[0] != FILE:
                listed, reason = _of_metadata(lists[0], listed)
        labels, classes = labels_by_name(path, names, listed, rule, files)
    others = [name for name in files if name not in {*names, *lists[:1]} and not name.endswith("/")]
    ignored = [*([f"{lists[0]} ({reason})"] if reason else []), *_one_of_each(others), *ignored]

    def picture(name: str) -> Picture:
        with named(path, name):
            return decoded(read(name, MAX_ENCODED))

    def items() -> Iterator[Item]:
        for i, name in enumerate(names):
            yield Item(name, -1 if labels is None else labels[i], lambda name=name: picture(name))

    return Source(path, form, len(names), labels is not None, items, classes, close, None, ignored)


def _one_of_each(names: Iterable[str]) -> list[str]:
    """The names, with one of each suffix first."""
    seen: collections.Counter[str] = collections.Counter()
    keys = {}
    for name in names:
        seen[suffix := PurePosixPath(name).suffix] += 1
        keys[name] = seen[suffix] > 1
    return sorted(keys, key=lambda name: keys[name])


def _of_metadata(name: str, content: bytes) -> tuple[bytes | None, str]:
    """The list of a file of metadata in the form of dataset.json; None and the reason if it has no labels."""
    text = content.decode("utf-8-sig")
    lines = text.split("\n") if name.endswith(".jsonl") else ()
    rows = [json.loads(line) for line in lines if line.strip()] or list(csv.DictReader(io.StringIO(text, newline="")))
    if not all(isinstance(row, dict) for row in rows):
        raise ValueError('must have a row {"file_name": …, "label": …} in each line')
    columns = [str(column) for column in rows[0]] if rows else []
    label = next((column for column in LABELS if column in columns), None)
    file = next((column for column in ("file_name", "filename", "file", "image", "path") if column in columns), None)
    if label is None or file is None:
        return None, f"its columns are {shortlist(columns)}; labels need file_name and label"
    pairs = [(row.get(file), "" if row.get(label) is None else row[label]) for row in rows]
    if odd := next((value for _, value in pairs if isinstance(value, list | dict)), None):
        raise ValueError(f"has the label {str(odd)[:40]}; an image has one number or name")
    known = sorted({str(value) for _, value in pairs} - {""})
    try:
        floats = {value: float(value) for value in known}
        # Other numbers stay texts, which are refused as labels.
        numbers = {value: int(number) if number.is_integer() else value for value, number in floats.items()}
        known = []
    except ValueError:
        numbers = {value: number for number, value in enumerate(known)}
    labels = [[file, numbers.get(str(value), -1)] for file, value in pairs]
    return json.dumps({"labels": labels, "names": known}).encode(), ""


def labels_by_name(
    path: Path, names: Sequence[str], listed: bytes | None, rule: str, files: Sequence[str] = ()
) -> Labels:
    """Labels of images; `listed` is the content of dataset.json, if it exists. Folders are classes in the order of
    their names; a single folder is no class. A folder of `files` without images has a number, too.

    >>> labels_by_name(folder, ["cat/1.png", "dog/2.png"], None, "auto")
    ([0, 1], ['cat', 'dog'])
    """
    if rule == "none" or (rule == "listed" and listed is None):
        return None, ()
    if listed is not None and rule != "folder":
        return _by_list(names, listed)
    if rule == "folder":
        folders = [PurePosixPath(name).parent.name for name in names]
    else:
        folders = [name.partition("/")[0] if "/" in name else "" for name in names]
    classes = sorted(set(folders))
    if len(classes) < 2:
        return None, ()
    if not classes[0]:
        message = "lies beside folders, which are classes: it has no label; --labels none drops all"
        raise DataError(path, names[folders.index("")], message)
    if rule == "auto" and {name.lower() for name in classes} <= _SPLITS:
        one = "train" if "train" in classes else classes[0]
        parts = f"has the folders {', '.join(classes)}, which are parts of a data set and no classes"
        hint = f'--under {one} (under="{one}") reads one of them, --labels folder or none reads all'
        raise DataError(path, "", f"{parts}; {hint}")
    for name in files:
        inside = PurePosixPath(f"{name}x").parent.name if rule == "folder" else name.partition("/")[0]
        classes += [inside] if inside and "/" in name else []
    classes = sorted(set(classes))
    numbers = {name: number for number, name in enumerate(classes)}
    return [numbers[name] for name in folders], classes


def _by_list(names: Sequence[str], listed: bytes) -> Labels:
    """{"labels": [["00000/img00000000.png", 6], …]}; null is no labels."""
    try:
        content = json.loads(listed)
        pairs, classes = content["labels"] or [], content.get("names", ())
        known = dict(pairs)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f'is not {{"labels": [[name, label], …]}}: {error}') from None
    if not pairs:
        return None, ()
    if len(known) < len(pairs):
        raise ValueError("gives an image two labels")
    for name, label in known.items():
        if type(label) is not int or not -("names" in content) <= label < 1 << 31:
            raise ValueError(f"gives {str(name)[:100]} the label {str(label)[:40]!r}; labels are whole numbers from 0")
    if odd := known.keys() ^ set(names):
        raise ValueError(f"must list the images that are there, each once; it differs in {min(odd)!r}")
    return [known[name] for name in names], classes
