"""Schedules and models on the Hugging Face Hub.

    hub.push_schedule(client.schedule("fast"), "me/fast-cifar10")
    hub.pull_schedule(client, "fast", "someone/fast-cifar10")

    hub.push_model("data/models/digits", "me/digits")
    hub.pull_model("someone/digits", "data/models/digits")  # then client.load_model("digits")

It needs the package huggingface_hub; tokens, caches and endpoints are that package's own.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import BadRequestError

if TYPE_CHECKING:
    from os import PathLike

    from .operations.schedules import Schedules
    from .schedule import Schedule

SCHEDULE, BASIS, MODEL, CONFIG = "schedule.json", "basis.safetensors", "model.safetensors", "config.json"
FILES = (SCHEDULE, BASIS, MODEL, CONFIG)


def push_schedule(schedule: Schedule, repo: str, *, private: bool | None = None, api: Any = None) -> str:
    """Upload a schedule, with the vectors of its basis, into a repository, which is created if there is none.

    Returns the address of the commit. api is a `huggingface_hub.HfApi`, by default one with the stored token.
    """
    with tempfile.TemporaryDirectory() as folder:
        schedule.save(Path(folder, SCHEDULE))
        made = schedule.file["family"]
        basis = f"basis {made['basis']}" if made["basis"] != "none" else "one subspace"
        about = f"The noise schedule `{schedule.name}` ({basis}) of [anisoflight](https://github.com/anisoflight)."
        use = f'hub.pull_schedule(client, "{schedule.name}", "{repo}")'
        return _push(Path(folder), repo, about, use, private, api)


def pull_schedule(
    client: Schedules, name: str, repo: str, *, revision: str | None = None, replace: bool = False, api: Any = None
) -> Schedule:
    """Store the schedule of a repository on the server under a name; what is no schedule is refused there."""
    with tempfile.TemporaryDirectory() as folder:
        _pull(repo, Path(folder), (SCHEDULE, BASIS), SCHEDULE, revision, api)
        return client.put_schedule(name, Path(folder, SCHEDULE), replace=replace)


def push_model(folder: str | PathLike[str], repo: str, *, private: bool | None = None, api: Any = None) -> str:
    """Upload a model's folder, such as data/models/digits; returns the address of the commit."""
    path = Path(folder)
    if missing := [name for name in (MODEL, CONFIG) if not (path / name).is_file()]:
        raise BadRequestError(
            f"folder must hold {MODEL} and {CONFIG}, as a server's models do, got {path} without {missing[0]}",
            "BAD_MODEL",
        )
    with tempfile.TemporaryDirectory() as copy:
        for name in FILES:
            if (path / name).is_file():
                shutil.copyfile(path / name, Path(copy, name))
        about = f"The diffusion model `{path.name}` of [anisoflight](https://github.com/anisoflight)."
        return _push(Path(copy), repo, about, f'hub.pull_model("{repo}", "data/models/{path.name}")', private, api)


def pull_model(repo: str, folder: str | PathLike[str], *, revision: str | None = None, api: Any = None) -> Path:
    """Download a repository's model into a new folder, which a server serves after `Client.load_model`."""
    path = Path(folder)
    if path.exists():
        raise FileExistsError(f"folder must be a new one, got {path}, which is there")
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as part:
        _pull(repo, Path(part), FILES, MODEL, revision, api)
        path.mkdir()
        for name in FILES:
            if Path(part, name).exists():
                Path(part, name).rename(path / name)
    return path


def _push(folder: Path, repo: str, about: str, use: str, private: bool | None, api: Any) -> str:
    card = f"---\nlibrary_name: anisoflight\n---\n{about}\n\n```python\nfrom anisoflight import hub\n\n{use}\n```\n"
    (folder / "README.md").write_text(card, encoding="utf-8")
    api = api or _api()
    api.create_repo(repo, private=private, exist_ok=True)
    return str(api.upload_folder(repo_id=repo, folder_path=folder, commit_message="Upload with anisoflight"))


def _pull(repo: str, folder: Path, names: tuple[str, ...], needed: str, revision: str | None, api: Any) -> None:
    (api or _api()).snapshot_download(repo, revision=revision, allow_patterns=list(names), local_dir=folder)
    if not (folder / needed).is_file():
        raise BadRequestError(
            f"repository must hold {needed}, as hub's push functions write it, got {repo} without", "BAD_REQUEST"
        )


def _api() -> Any:
    try:
        from huggingface_hub import HfApi  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise ImportError("anisoflight.hub needs the package huggingface_hub: pip install huggingface_hub") from None
    return HfApi()
