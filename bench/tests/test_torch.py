"""The programs that `make bench-torch` measures: each way to run them in PyTorch computes the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

torch = pytest.importorskip("torch")  # `make test-integration` has it

from bench_torch import compiled, measure, report  # noqa: E402
from bench_torch.network import SongUNet  # noqa: E402
from bench_torch.programs import Inputs, Programs  # noqa: E402
from bench_torch.session import Session  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

_CONFIG: dict[str, Any] = {
    "model_type": "SongUNet",
    "img_resolution": 4,
    "img_channels": 1,
    "label_dim": 3,
    "model_channels": 8,
    "channel_mult": [1],
    "num_blocks": 1,
    "attn_resolutions": [],
    "dropout": 0,
}


def _ways() -> tuple[Programs, Programs]:
    torch.manual_seed(0)
    net = SongUNet(_CONFIG)
    saved = {f"input/{name}": torch.randn(2, 4, 4, 1) for name in ("x", "w", "z", "eps", "images", "latents")}
    saved |= {f"input/{name}": torch.rand(2) + 0.1 for name in ("noise", "g", "omega", "score")}
    saved["input/labels"] = torch.tensor([0, 2])
    inputs = Inputs(saved, net, "cpu", torch.contiguous_format)
    return Programs(net, inputs), compiled.Compiled(net, inputs)


def test_whole_graphs_compute_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Second derivatives, recorded as one graph; compiled by Dynamo alone, since a C++ compiler takes minutes."""
    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda of, mode=None: real(of, backend="eager"))
    eager, whole = _ways()
    for name in ("vjp", "double", "step-full"):
        want, got = eager.outputs(name), whole.outputs(name)
        assert want.keys() == got.keys()
        for key, value in want.items():
            torch.testing.assert_close(got[key], value, rtol=1e-5, atol=1e-6, msg=f"{name} {key}")
    before = {name: p.detach().clone() for name, p in whole.parameters.items()}
    whole.named("step-full")()
    assert all(not torch.equal(before[name], p) for name, p in whole.parameters.items())  # every one is trained


def test_no_compiler_is_said_clearly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(SystemExit, match=r"no-such-compiler.*--no-inductor"):
        compiled.check_compiler("cpu")
    compiled.check_compiler("cuda")


def test_a_session_comes_back_and_its_best_opponent_counts(tmp_path: Path) -> None:
    def times(*walls: float) -> list[measure.Time]:
        return [measure.Time(wall, 2 * wall) for wall in walls]

    ways = {"ours": times(1, 2, 4), "contiguous": times(3, 3, 3), "inductor": times(1, 2, 2)}
    row = measure.Row("forward", 1e-6, {"compile_seconds": 3.0}, {"contiguous": 0.1, "inductor": 40.0}, ways, 1e9)
    session = Session("8x8", 2, 3, 64, 1000, {"ours": 10.0, "torch": 20.0}, [1.0, 2.0], [row])
    session.write(tmp_path / "session.json")
    assert Session.read(tmp_path / "session.json") == session
    assert row.best("wall") == "inductor"
    assert row.ratios("wall") == [1, 1, 0.5]
    text = report.section(session)
    assert "**1.00** [0.75, 1.00]" in text
    assert "3.0, 40.0" in text
    assert report.as_csv([session]).splitlines()[4] == "8x8,2,forward,contiguous,0,3.000000,6.000000"
