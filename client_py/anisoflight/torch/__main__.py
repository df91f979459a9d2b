"""python -m anisoflight.torch FOLDER_OR_HUB_NAME --name NAME: a folder or repository of diffusers on a server."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from ..client import connect
from ..errors import AnisoflightError
from ..wire.calls import DEFAULT_LOCATION


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m anisoflight.torch",
        description="Send a network that diffusers has saved, with its scheduler, to a server.",
    )
    for option, said in {
        "--revision": "branch, tag or commit of the repository on the Hub (default: main)",
        "--token": "where the server asks for one",
        "--part": "folder of the pipeline that is the network (default: unet, or transformer)",
        "--prediction": "without a scheduler: edm, vp, ve, epsilon, v, sample or flow",
    }.items():
        parser.add_argument(option, help=said)
    said = "folder of a pipeline, or of a model (config.json and its weights); or its name on the Hub, user/name"
    parser.add_argument("source", metavar="FOLDER_OR_HUB_NAME", help=said)
    parser.add_argument("--name", required=True, help="of the model on the server")
    parser.add_argument("--server", default=DEFAULT_LOCATION, help="default: %(default)s")
    parser.add_argument("--replace", action="store_true", help="put it in the place of an older model")
    given = parser.parse_args(argv)
    try:
        module, scheduler = opened(found(given.source, given.part, given.revision), given.part)
        with connect(given.server, given.token) as client:
            made = client.put_network(
                given.name, module, scheduler=scheduler, prediction=given.prediction, replace=given.replace
            )
    except (AnisoflightError, OSError, ValueError) as error:
        print(f"python -m anisoflight.torch: {error}", file=sys.stderr)
        return 1
    print(json.dumps({key: made[key] for key in ("name", "parameters", "hash") if key in made}))
    return 0


def found(source: str, part: str | None = None, revision: str | None = None) -> Path:
    """The folder itself, or that of a repository of the Hub in huggingface_hub's cache, with the files that are read.

    What is in the cache is not downloaded again, and with HF_HUB_OFFLINE=1 nothing is.
    """
    if Path(source).exists():
        if revision is not None:
            raise ValueError(f"--revision is of a repository on the Hub, and {source} is a folder")
        return Path(source)
    if source.count("/") != 1 or source.startswith((".", "/", "~")):
        raise ValueError(f"there is no folder {source}, and names on the Hub are user/name")
    from huggingface_hub import snapshot_download  # pyright: ignore[reportMissingImports]

    def copied(names: list[str], left: list[str] | None = None) -> Path:
        try:
            return Path(snapshot_download(source, revision=revision, allow_patterns=names, ignore_patterns=left))
        except (OSError, ValueError) as error:
            raise ValueError(f"{source} is no folder, and from the Hub: {error}") from error

    folder = copied(["model_index.json", "config.json"])
    files = ["config.json", "diffusion_pytorch_model*"]
    if (folder / "model_index.json").is_file():
        names = [part] if part else ["unet", "transformer"]
        files = ["model_index.json", "scheduler/*.json"]
        files += [f"{name}/{file}" for name in names for file in ("*.json", "diffusion_pytorch_model*")]
    half = ["*.bin", "*.msgpack", "*.fp16.*", "*.bf16.*", "*.non_ema.*"]  # not what from_pretrained opens
    return copied(files, half)


def opened(folder: Path, part: str | None = None) -> tuple[Any, Any]:
    """The network and the scheduler of a folder of diffusers; no scheduler where it is a model's own folder."""
    import diffusers  # pyright: ignore[reportMissingImports]

    if (folder / "model_index.json").is_file():
        index = json.loads((folder / "model_index.json").read_text())
        part = part or next((name for name in ("unet", "transformer") if name in index), None)
        if part is None or part not in index:
            parts = [name for name in index if not name.startswith("_")]
            raise ValueError(f"--part must be one of {', '.join(parts)}, got {part}")
        library, scheduler_class = index["scheduler"]
        scheduler = getattr(importlib.import_module(library), scheduler_class).from_pretrained(folder / "scheduler")
        return opened(folder / part)[0], scheduler
    config = folder / "config.json"
    if not config.is_file():
        raise ValueError(f"{folder} must hold model_index.json or config.json, as diffusers saves them")
    name = json.loads(config.read_text()).get("_class_name", "")
    if not hasattr(diffusers, name):
        raise ValueError(f"{config} must name a class of diffusers as _class_name, got {name!r}")
    return getattr(diffusers, name).from_pretrained(folder), None


if __name__ == "__main__":
    raise SystemExit(main())
