"""``python -m anisoflight.data``: inspect images in many formats, and convert them to data sets."""

import argparse
import json
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any

from ..errors import say
from ..images import shortlist
from ..serving.commands import add_folder, ended, exit_with, folder_server, path_of
from .conversion import Conversion
from .inspection import inspect
from .opening import read_source
from .targets import UPLOADS, upload, write_folder, write_zip
from .transforms import TRANSFORMS, check

FORMATS = """PATH is a folder or zip of PNG, JPEG, WebP or BMP images (StyleGAN's and EDM's with dataset.json; else
folders are classes), an .npz with images and labels or arr_0, an .npy, CIFAR-10's python or binary batches (a folder, a
.tar.gz, one batch), Parquet or Arrow with a column image (a fixed shape tensor, or encoded images), a folder of such
files, or a stored data set. docs/data.md has an example of each.
"""
EXAMPLES = {
    "inspect": "  python -m anisoflight.data inspect downloads/afhqv2/train",
    "convert": """  python -m anisoflight.data convert downloads/cifar-10-python.tar.gz --name cifar10
  python -m anisoflight.data convert downloads/afhqv2/train --name afhqv2 --resolution 64
  python -m anisoflight.data convert downloads/ffhq/images1024x1024 --name ffhq --resolution 64 --labels none
  python -m anisoflight.data convert downloads/imagenet/train --out imagenet-64x64.zip --resolution 64 \\
      --transform center-crop
  python -m anisoflight.data convert downloads/winds.npy --name winds --scale measured""",
}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    root = argparse.ArgumentParser(prog="python -m anisoflight.data", description=__doc__)
    group = root.add_subparsers(metavar="COMMAND", required=True)
    about = "decode every image and report sizes, classes, moments, T and c of schedules, and bad files"
    _command(group, "inspect", about).set_defaults(run=_inspect)
    convert = _command(group, "convert", "convert images to a data set of a server, or to an EDM zip")
    convert.set_defaults(run=_convert)
    target = convert.add_mutually_exclusive_group(required=True)
    target.add_argument("--name", help="name of the data set in the data folder, or on the server")
    target.add_argument(
        "--out", metavar="PATH", type=path_of, help="in place of --name: FILE.zip for EDM's tools, else a folder"
    )
    about = "size in pixels: 64 or WIDTHxHEIGHT (default: as the images are)"
    convert.add_argument("--resolution", metavar="SIZE", type=_size, help=about)
    about = "EDM's, one of %(choices)s (default resize)"
    convert.add_argument("--transform", metavar="NAME", choices=tuple(TRANSFORMS), help=about)
    about = "1 makes all images grey, 3 colour (default: as the images are)"
    convert.add_argument("--channels", metavar="N", type=int, choices=(1, 3), help=about)
    about = "of floats in other units: a network sees (x - mean)/scale; a number, a,b,… by channel, or measured"
    convert.add_argument("--mean", metavar="NUMBERS", type=_units, help=about)
    about = "as --mean; measured is twice each channel's standard deviation, and then the mean is measured, too"
    convert.add_argument("--scale", metavar="NUMBERS", type=_units, help=about)
    convert.add_argument("--skip-bad", action="store_true", help="skip images that cannot be read, and name each")
    convert.add_argument("--replace", action="store_true", help="replace an existing data set or file")
    add_folder(convert.add_argument_group("where --name is stored"))
    return root


def _command(group: Any, name: str, about: str) -> argparse.ArgumentParser:
    text = f"{FORMATS}\nexamples:\n{EXAMPLES[name]}"
    style = argparse.RawDescriptionHelpFormatter
    command = group.add_parser(name, help=about, description=about, epilog=text, formatter_class=style)
    command.add_argument("path", metavar="PATH", type=path_of, help="images, in any format that is read")
    about = (
        "source of labels: auto (the format's own), listed (in dataset.json or metadata), folder (the image's), none, "
        "or a column of a table or .npz (default auto)"
    )
    command.add_argument("--labels", metavar="SOURCE", default="auto", help=about)
    about = "read only this folder of a folder or zip, such as train, or Parquet files whose names begin so"
    command.add_argument("--under", metavar="FOLDER", help=about)
    about = "layout of arrays in .npy and .npz: HWC or CHW (default: HWC if the last size is at most 4)"
    command.add_argument("--layout", choices=("HWC", "CHW"), help=about)
    command.add_argument("--json", action="store_true", help="print JSON")
    command.add_argument("--quiet", action="store_true", help="no progress bars")
    return command


def _size(text: str) -> tuple[int, int]:
    """Height and width.

    >>> _size("64"), _size("64x48")
    ((64, 64), (48, 64))
    """
    if not (match := re.fullmatch(r"([0-9]{1,9})(?:x([0-9]{1,9}))?", text)):
        raise argparse.ArgumentTypeError(f"must be a number of pixels, or WIDTHxHEIGHT, got {text!r}")
    return int(match[2] or match[1]), int(match[1])


def _units(text: str) -> float | list[float] | str:
    """One number, several, or "measured".

    >>> _units("measured"), _units("0.5"), _units("273,-1")
    ('measured', 0.5, [273.0, -1.0])
    """
    if text == "measured":
        return text
    numbers = [float(part) for part in text.split(",")]
    return numbers[0] if len(numbers) == 1 else numbers


def _inspect(args: argparse.Namespace) -> None:
    with read_source(args.path, args.labels, args.layout, args.under) as source:
        report = inspect(source, not args.quiet)
    print(json.dumps(report, indent=2, ensure_ascii=False) if args.json else "\n".join(_lines(report)))


def _lines(report: dict[str, Any]) -> Iterator[str]:
    yield f"format   {report['format']}"
    yield f"images   {report['images']} {report['dtype']}"
    for size in report["sizes"]:
        yield f"size     {size['height']}×{size['width']}, {size['channels']} channels: {size['images']} images"
    for name in ("mean", "std", "low", "high"):
        if name in report:
            yield f"{name:8} {' '.join(f'{value:.4f}' for value in report[name])}"
    for name in ("T", "c"):
        if name in report:
            yield f"{name:8} {report[name]:.4g}"
    for name, values in report.get("normalization", {}).items():
        yield f"normalization {name} {' '.join(f'{value:.6g}' for value in values)}"
    if "hash" in report:
        yield f"hash     {report['hash']}"
    for found in report.get("classes", ()):
        yield f"class {found['label']:<3}{found.get('name', '')}: {found['images']} images"
    if report["ignored"]:
        yield f"ignored  {shortlist(report['ignored'])}"
    for bad in report["bad"]:
        yield f"bad      {bad['name']}: {bad['error']}"
    if report["n_bad"]:
        yield f"bad      {report['n_bad']} in all"


def _convert(args: argparse.Namespace) -> None:
    def skip(error: Exception) -> None:
        say(f"left out: {error}")

    out = args.out
    if out is not None:
        if os.path.lexists(out) and not args.replace:
            raise FileExistsError(f"{out} exists; --replace replaces it")
        out.parent.mkdir(parents=True, exist_ok=True)
    form = (args.resolution, args.transform, args.channels, skip if args.skip_bad else None, not args.quiet)
    with read_source(args.path, args.labels, args.layout, args.under) as source:
        images = Conversion(source, *form, args.mean, args.scale)
        if out is None:
            out = args.name if args.server else args.data / "datasets" / args.name
            with folder_server(args, *UPLOADS) as client:
                upload(client, args.name, images, args.replace)
        else:
            (write_zip if out.suffix == ".zip" else write_folder)(out, images)
    assert images.shape is not None
    source = images.source
    height, width, channels = images.shape
    ignored = list(source.ignored)
    counts = {"images": images.images, "left_out": images.left_out, "bad": images.bad, "ignored": ignored}
    if args.json:
        shape = {"height": height, "width": width, "channels": channels, "labels": source.labelled}
        print(json.dumps({"name" if args.server else "path": str(out), **counts, **shape}))
        return
    line = f"{out}: {images.images} images of {height}×{width} pixels in {channels} channels"
    line += ", with labels" if source.labelled else ", without labels"
    line += f"; {images.left_out} too small and left out" if images.left_out else ""
    empty = source.without_images(images.used, images.seen) if source.labelled else []
    line += f"; no images of {shortlist(empty)}, whose numbers stay" if empty else ""
    line += f"; {images.bad} bad and left out" if images.bad else ""
    print(line + (f"; ignored {shortlist(ignored)}" if ignored else ""))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command: 0, 1 of a named error, 2 of wrong usage, 130 if interrupted."""
    root = parser()
    args = root.parse_args(arguments)
    if args.run is _convert:
        try:
            check(args.transform, args.resolution, args.channels)
        except ValueError as error:
            root.error(str(error))
    return ended(lambda: args.run(args), interrupted="interrupted; nothing was written")


if __name__ == "__main__":
    exit_with(main)
