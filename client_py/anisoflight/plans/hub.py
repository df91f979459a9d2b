"""Plans as folders of the Hugging Face Hub: plan.json with its basis and start beside it, and a card, README.md."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import BadRequestError
from ..files import path_of
from .storage import BASIS_FILE, START_FILE

if TYPE_CHECKING:
    from .plan import Plan

PLAN_FILE, CARD_FILE = "plan.json", "README.md"

_CARD = """\
---
library_name: anisoflight
tags: [anisoflight, diffusion, few-step-sampling]
---

# {title}

{summary}

| | |
|---|---|
{rows}

```python
from anisoflight import Plan

plan = Plan.from_pretrained("{name}")
{pipeline}samples = plan(denoiser, noise)  # or in your loop, in torch or numpy
```

The plan is for the network and the guidance that it was made with, and for no other. It holds no weights of a
network{law}.
"""


_PIPELINE = """\
pipe.scheduler = plan.scheduler(pipe)  # of diffusers
images = pipe(num_inference_steps=plan.steps).images
"""


def write(plan: Plan, folder: str | os.PathLike[str], name: str | None = None) -> Path:
    """Write the folder of a plan. A card that is there is kept."""
    path = path_of(folder)
    path.mkdir(parents=True, exist_ok=True)
    plan.save(path / PLAN_FILE)
    if not (path / CARD_FILE).exists():
        (path / CARD_FILE).write_text(card(plan, name or str(folder)), encoding="utf-8")
    return path


def folder_of(name: str | os.PathLike[str], **options: Any) -> Path:
    """A folder that is there, or the snapshot of a repository of the hub."""
    if Path(name).is_dir():
        return path_of(name)
    if not re.fullmatch(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", os.fspath(name)):
        raise BadRequestError(f"no folder is at {name}, and it is no name of a repository, such as you/your-plan")
    hub = _hub()
    allowed = [PLAN_FILE, BASIS_FILE, START_FILE]
    return Path(hub.snapshot_download(os.fspath(name), allow_patterns=allowed, **options))


def push(plan: Plan, repo: str, token: str | None, private: bool | None, message: str | None) -> str:
    """Upload the folder of a plan to a repository, which is made unless it is there; returns the address."""
    hub = _hub()
    made = hub.create_repo(repo, token=token, private=private, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        write(plan, folder, made.repo_id)
        if hub.file_exists(made.repo_id, CARD_FILE, token=token):  # its owner's
            (Path(folder) / CARD_FILE).unlink()
        hub.upload_folder(repo_id=made.repo_id, folder_path=folder, token=token, commit_message=message or "Add plan")
    return str(made)


def card(plan: Plan, name: str) -> str:
    """The card of a plan, from what is known of it."""
    info, made = plan.info or {}, plan.provenance or {}
    network = plan.model or info.get("model") or "a network"
    if "network" in made and "shape" in made:
        network = f"a network of kind {made['network']} for values of {'×'.join(map(str, made['shape']))}"
    rows = {"network": network, "evaluations": f"{plan.nfe}, in {plan.steps} steps"}
    rows |= {"guidance": "set for each evaluation"} if plan.guides else {}
    rows |= {"x_0": f"clipped to ±{plan.clip:g}"} if plan.clip is not None else {}
    rows |= {"temperature of the noise": f"{plan.temperature:g}"} if plan.temperature != 1 else {}
    if info.get("ratio_stderr") and all(name in info for name in ("ratio", "against", "samples")):
        measure = "error to converged samples" if info.get("paired") else "Fréchet distance to the data"
        against = f"{info['against']['solver']} from σ = {info['against']['sigma_max']:.4g}"
        ratio = f"{info['ratio']:.3g} ± {info['ratio_stderr']:.1g}"
        rows["gain"] = f"{ratio} times the {measure} of the best simpler plain sampler, {against}"
        rows["measured on"] = f"{info['samples']} samples held back"
    if "evaluations" in info and "elapsed" in info:
        rows["the search took"] = f"{info['evaluations']:,} evaluations, {info['elapsed']:.0f} s"
    elif "seconds" in info:
        rows["the search took"] = f"{sum(info['seconds'].values()):.0f} s"
    return _CARD.format(
        title=f"{plan.nfe} evaluations for {network}", summary=info.get("summary", "A sampler as numbers."), name=name,
        rows="\n".join(f"| {key} | {value} |" for key, value in rows.items()),
        pipeline="" if plan.guides or plan.count > 1 else _PIPELINE,
        law=", but the mean and the spectrum of the images of its data" * (plan.law is not None),
    )  # fmt: skip


def _hub() -> Any:
    try:
        import huggingface_hub  # pyright: ignore[reportMissingImports]
    except ImportError:
        raise BadRequestError('repositories of the Hub need its package: pip install "huggingface_hub"') from None
    return huggingface_hub
