"""python -m anisoflight.torch FOLDER --name NAME: a folder of diffusers on a server."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path
from typing import Any

from ..calls import DEFAULT_LOCATION
from ..client import connect
from ..errors import AnisoflightError


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m anisoflight.torch",
        description="Send a network that diffusers has saved, with its scheduler, to a server.",
    )
    parser.add_argument("folder", type=Path, help="of a pipeline, or of a model (config.json and its weights)")
    parser.add_argument("--name", required=True, help="of the model on the server")
    parser.add_argument("--server", default=DEFAULT_LOCATION, help="default: %(default)s")
    parser.add_argument("--token", help="where the server asks for one")
    parser.add_argument("--part", help="of the pipeline that is the network (default: unet, or transformer)")
    parser.add_argument(
        "--prediction",
        help="what the network predicts, where the folder has no scheduler: edm, vp, ve, epsilon, v, sample or flow",
    )
    parser.add_argument("--replace", action="store_true", help="put it in the place of an older model")
    given = parser.parse_args(argv)
    try:
        module, scheduler = opened(given.folder, given.part)
        with connect(given.server, given.token) as client:
            made = client.put_network(
                given.name, module, scheduler=scheduler, prediction=given.prediction, replace=given.replace
            )
    except (AnisoflightError, OSError, ValueError) as error:
        print(f"python -m anisoflight.torch: {error}", file=sys.stderr)
        return 1
    print(json.dumps({key: made[key] for key in ("name", "parameters", "hash") if key in made}))
    return 0


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
