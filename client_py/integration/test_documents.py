"""The documents that need torch: docs/networks.md, the README's pipeline, and a notebook."""

import re
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from diffusers import DDPMPipeline, DDPMScheduler, DPMSolverMultistepScheduler, UNet2DModel
from matplotlib import pyplot
from pipelines import flux, sdxl

from anisoflight import Client, Plan

ROOT = Path(__file__).parents[2]


def blocks(document: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_blocks_of_the_page(client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    torch.manual_seed(0)
    client.make_mixture("digits", "digits", covariance="dct", progress=False)
    names: dict[str, Any] = {"client": client}
    sizes: dict[str, Any] = {"block_out_channels": (8, 16), "norm_num_groups": 4}
    kinds = {"down_block_types": ("DownBlock2D",) * 2, "up_block_types": ("UpBlock2D",) * 2}
    unet = UNet2DModel(sample_size=8, in_channels=1, out_channels=1, **sizes, **kinds)
    DDPMPipeline(unet, DDPMScheduler()).save_pretrained("your-pipeline")
    sdxl(tmp_path / "tokens").save_pretrained("stabilityai/stable-diffusion-xl-base-1.0")
    flux(tmp_path / "tokens").save_pretrained("black-forest-labs/FLUX.1-dev")
    for code in blocks("docs/networks.md"):
        code = code.replace("in_channels // 4, 128, 128", "in_channels // 4, 8, 8")  # the latents of the small pipeline
        exec(compile(code, "networks.md", "exec"), names)
    assert sorted(path.name for path in Path("out").iterdir()) == [
        *("all.arrow", "all.npy", "all.npz", "all.parquet", "few-3.json", "grid.png", "pipeline", "unipc-9.json"),
        "weather.csv",
    ]
    assert Plan.load("out/few-3.json").nfe == names["other"].nfe == 3
    assert names["latents"].shape == (2, 4, 8, 8)
    assert names["latents"].isfinite().all()
    assert 9 in DDPMPipeline.from_pretrained("out/pipeline").scheduler.plans
    assert set(client.models().index) >= {"my-unet", "prompted", "latent", "weather", "signal"}
    assert set(client.datasets().index) >= {"arrow", "faces"}
    # The network of its loop is that of data of the normal law N(0, 1): what comes out is what went in, but for the
    # error of nine steps, which is one factor.
    np.testing.assert_array_equal(names["loop"].x, names["drawn"])
    grown = names["drawn"] / np.random.default_rng(0).standard_normal((4, 1, 8, 8))
    assert np.ptp(grown) < 1e-6
    assert 0.7 < grown.mean() < 1.5


def test_the_readmes_pipeline(unet: UNet2DModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its pipeline is one of digits; the pictures are those of the plan that it saves."""
    monkeypatch.chdir(tmp_path)
    DDPMPipeline(unet, DDPMScheduler()).save_pretrained("your-pipeline")
    (code,) = (code for code in blocks("README.md") if "Denoiser" in code)
    names: dict[str, Any] = {}
    exec(compile(code, "README.md", "exec"), names)
    assert len(names["images"]) == 16
    pipe, plan = names["pipe"], Plan.load(next(tmp_path.glob("*.json")))
    drawn = pipe(4, torch.Generator().manual_seed(1), plan.steps, output_type="np").images
    noise = torch.randn(4, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    expected = plan(names["D"], noise, progress=False).clamp(-1, 1) / 2 + 0.5
    # The pipeline's unit noise is 1 ∓ 8e-5 times the start at σ = 80.
    np.testing.assert_allclose(drawn, expected.permute(0, 2, 3, 1).numpy(), atol=2e-3)


def test_the_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples of five evaluations are closer to converged ones than those of DPM-Solver++; image to image keeps less of
    the image at a greater strength; the scheduler that it stores is the plan."""
    monkeypatch.setenv("ANISOFLIGHT_TORCH_STEPS", "300")
    pyplot.switch_backend("agg")
    notebook: Any = nbformat.read(ROOT / "client_py/notebooks/torch-pipeline.ipynb", as_version=4)
    names: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            exec(compile(cell.source, f"torch-pipeline.ipynb[{number}]", "exec"), names)
    axes = [ax for number in pyplot.get_fignums() for ax in pyplot.figure(number).axes]
    pyplot.close("all")
    assert [len(ax.images) for ax in axes] == [1] * 9
    assert np.mean(names["losses"][-20:]) < 0.3 * np.mean(names["losses"][:20])
    nfe = names["plan"].scheduler(names["pipe"]).nfe
    assert [*names["drawn"]][:3] == ["DDPM (5)", "DPM-Solver++ (5)", f"few ({nfe})"]
    pipe, solver = names["pipe"], DPMSolverMultistepScheduler.from_config(names["scheduler"].config)

    def drawn(scheduler: Any, steps: int) -> np.ndarray[Any, Any]:
        pipe.scheduler = scheduler
        return pipe(64, torch.Generator().manual_seed(1), num_inference_steps=steps, output_type="np").images

    converged = drawn(solver, 200)
    errors = [
        np.square(drawn(*names["schedulers"][key]) - converged).mean((1, 2, 3)) for key in ("few", "DPM-Solver++")
    ]
    found, plain = np.exp(np.log(errors).mean(1))
    assert found < 0.7 * plain
    assert names["difference"] < 2e-3
    originals, *others = names["changed"].values()
    kept = [float(np.square(batch - originals).mean()) for batch in others]
    assert kept == sorted(kept)
    assert names["kept"].scheduler.plans.keys() == {names["plan"].steps}
    np.testing.assert_allclose(np.asarray(names["picture"]) / 255, names["of_few"][0, ..., 0], atol=1 / 255)
