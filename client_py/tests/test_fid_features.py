"""Feature extractors: the seams to torch and onnxruntime, by stand-ins for both, and the built-ins."""

from __future__ import annotations

import json
import pickle
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from anisoflight.fid.builtin import principal_features
from anisoflight.fid.errors import FidError
from anisoflight.fid.features import for_calc, for_each, for_reference
from anisoflight.fid.networks import Loading, declared
from anisoflight.fid.reference import Reference
from anisoflight.fid.sources import Files, Source
from anisoflight.images import to_float
from anisoflight.moments import Moments

UNREAD = cast("Source", None)
"""The source for a network's file, which is not fitted to any."""
IMAGES = np.random.default_rng(0).integers(0, 256, (40, 4, 4, 3), np.uint8)


class Tensor:
    """As much of a torch tensor as is used."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def to(self, _: object) -> Tensor:
        return self

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray:
        return self.array


class Module:
    """Means over the pixels of NCHW images; `return_features` makes it an Inception network's likeness."""

    def __init__(self, width: int = 3) -> None:
        self.width = width

    def to(self, _: object) -> Module:
        return self

    def eval(self) -> Module:
        return self

    def forward(self, images: Tensor) -> Tensor:
        assert images.array.shape[1] == 3
        return Tensor(
            np.resize(images.array.mean(axis=(2, 3), dtype=np.float32), (len(images.array), self.width, 1, 1))
        )

    def __call__(self, *args: Any, **named: Any) -> Tensor:
        return self.forward(*args, **named)


class Inception(Module):
    def forward(self, images: Tensor, return_features: bool = False) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        assert return_features
        assert images.array.dtype == np.uint8
        return Tensor(np.resize(images.array.mean(axis=(2, 3)), (len(images.array), 2048)))


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A stand-in for torch whose TorchScript files are pickles."""

    def load(path: str, map_location: str) -> Module:
        try:
            return pickle.loads(Path(path).read_bytes())
        except pickle.UnpicklingError:
            raise RuntimeError("PytorchStreamReader failed\nand a trace") from None

    fake = SimpleNamespace(
        jit=SimpleNamespace(load=load),
        cuda=SimpleNamespace(is_available=lambda: False),
        device=str,
        from_numpy=Tensor,
        inference_mode=nullcontext,
    )
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


def written(path: Path, module: object) -> str:
    path.write_bytes(pickle.dumps(module))
    return str(path)


def reference_of(features: Any) -> Reference:
    provenance = {"features": {"name": features.name, "hash": features.hash}}
    return Reference(Moments.of(features(IMAGES)), provenance, features.parameters)


@pytest.mark.usefixtures("torch")
def test_torchscript_gives_rows_of_features(tmp_path: Path) -> None:
    features = for_reference(written(tmp_path / "net.pt", Module()), UNREAD, Loading())
    found = features(IMAGES)
    assert (features.name, features.dimension, features.published) == ("net.pt", 3, False)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, IMAGES.mean(axis=(1, 2)), rtol=1e-6)
    np.testing.assert_allclose(features(IMAGES[..., :1]), np.repeat(IMAGES.mean(axis=(1, 2))[:, :1], 3, 1), rtol=1e-6)


@pytest.mark.usefixtures("torch")
def test_a_pickle_is_loaded_only_when_trusted(tmp_path: Path) -> None:
    path = written(tmp_path / "inception.pkl", Inception())
    with pytest.raises(FidError, match=r"executes code in it\. Use --trust"):
        for_reference(path, UNREAD, Loading())
    features = for_reference(path, UNREAD, Loading(trust=True))
    assert (features.dimension, features.published) == (2048, True)  # it takes return_features, and gives 2048


@pytest.mark.usefixtures("torch")
def test_a_pickle_that_needs_a_repository_says_which_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = ModuleType("torch_utils_of_theirs")
    theirs.Net = type("Net", (Module,), {"__module__": theirs.__name__})  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, theirs.__name__, theirs)
    path = written(tmp_path / "net.pkl", theirs.Net())
    monkeypatch.delitem(sys.modules, theirs.__name__)
    with pytest.raises(FidError, match="needs the Python module torch_utils_of_theirs"):
        for_reference(path, UNREAD, Loading(trust=True))


@pytest.mark.usefixtures("torch")
def test_files_that_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def says(path: str, loading: Loading | None = None) -> str:
        with pytest.raises(FidError) as caught:
            for_reference(path, UNREAD, loading or Loading())
        return caught.value.message

    assert "names no features; they are a file .pt, .torchscript, .pkl, .onnx" in says("inception")
    assert "names no features" in says("pca-0")
    assert "there is no file" in says("nowhere.pt")
    (tmp_path / "text.pt").write_text("text")
    assert "text.pt is no TorchScript file: PytorchStreamReader failed" in says(str(tmp_path / "text.pt"))
    (tmp_path / "text.pkl").write_text("text")
    assert "text.pkl is no whole pickle" in says(str(tmp_path / "text.pkl"), Loading(trust=True))
    monkeypatch.setitem(sys.modules, "torch", None)
    assert "running text.pt needs the package torch: pip install torch" in says(str(tmp_path / "text.pt"))
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (tmp_path / "n.onnx").write_text("text")
    assert "running n.onnx needs the package onnxruntime" in says(str(tmp_path / "n.onnx"))


@pytest.mark.usefixtures("torch")
def test_a_reference_of_other_features_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "net.pt", Module())
    features = for_reference(path, UNREAD, Loading())
    assert for_calc(path, reference_of(features), Loading()).hash == features.hash
    other = written(tmp_path / "other.pt", Module(5))
    with pytest.raises(FidError, match=r"other.pt is not the network of the reference, which is of net.pt"):
        for_calc(other, reference_of(features), Loading())
    unnamed = Reference(Moments(np.zeros(3), np.eye(3)))  # as EDM's are
    assert for_calc(path, unnamed, Loading()).dimension == 3
    with pytest.raises(FidError, match=r"other.pt gives 5 features, the reference has 3"):
        for_calc(other, unnamed, Loading())


@pytest.mark.usefixtures("torch")
def test_each_reference_finds_its_features(tmp_path: Path) -> None:
    np.savez(tmp_path / "n.npz", images=IMAGES)
    paths = [written(tmp_path / "net.pt", Module()), written(tmp_path / "other.pt", Module(5))]
    made = [for_reference(name, Files(tmp_path / "n.npz"), Loading()) for name in (*paths, "pixels")]
    unnamed = Reference(Moments(np.zeros(5), np.eye(5)))  # as EDM's are
    references = [*map(reference_of, made), unnamed]
    found = for_each(paths, references, Loading())
    assert [features.hash for features in found] == [made[i].hash for i in (0, 1, 2, 1)]
    with pytest.raises(FidError, match=r"the reference of 5 features of other\.pt needs its network among --features"):
        for_each(paths[:1], references, Loading())
    with pytest.raises(FidError, match=r"--features pca-5, but the references are of net\.pt, other\.pt, pixels"):
        for_each(["pca-5"], references, Loading())


def test_onnx_is_fed_as_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fed = []

    class Session:
        def __init__(self, path: str, providers: list[str]) -> None:
            assert (Path(path).name, providers) == ("dino.onnx", ["CPUExecutionProvider"])

        def get_inputs(self) -> list[SimpleNamespace]:
            return [SimpleNamespace(name="pixels", type="tensor(float)", shape=["n", 8, 6, 3])]

        def run(self, _: None, named: dict[str, np.ndarray]) -> list[np.ndarray]:
            fed.append(named["pixels"])
            if fed[-1].shape[1:3] != (8, 6):
                raise RuntimeError("INVALID_ARGUMENT\nmore")
            return [named["pixels"].mean(axis=(1, 2))]

    fake = SimpleNamespace(InferenceSession=Session, get_available_providers=lambda: ["CPUExecutionProvider"])
    monkeypatch.setitem(sys.modules, "onnxruntime", fake)
    path = tmp_path / "dino.onnx"
    path.write_bytes(b"network")
    with pytest.raises(FidError, match=r"dino.onnx fails on uint8 of 1×.* takes tensor\(float\).*INVALID_ARGUMENT$"):
        for_reference(str(path), UNREAD, Loading())  # a black image, channels first
    (tmp_path / "dino.onnx.json").write_text('{"layout": "NHWC"}')
    plain = for_reference(str(path), UNREAD, Loading())
    assert plain.dimension == 3  # by an image of the size that it fixes
    message = {"name": "dino", "size": [8, 6], "range": [0, 1], "mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]}
    (tmp_path / "dino.onnx.json").write_text(json.dumps({**message, "layout": "NHWC", "published": False}))
    features = for_reference(str(path), UNREAD, Loading())
    assert features.hash != plain.hash  # the declaration counts
    features(np.full((2, 4, 4, 3), 51, np.uint8))
    assert (fed[-1].shape, fed[-1].dtype) == ((2, 8, 6, 3), np.float32)
    np.testing.assert_allclose(fed[-1][0, 0, 0], (0.2 - np.array([0.5, 0.4, 0.3])) / [0.2, 0.3, 0.4], rtol=1e-6)
    with pytest.raises(FidError, match="onnxruntime offers no CUDA here"):
        for_reference(str(path), UNREAD, Loading(device="cuda"))


def test_declarations_that_are_none(tmp_path: Path) -> None:
    beside, path = tmp_path / "n.pt.json", tmp_path / "n.pt"
    for said, message in {
        '{"resolution": 224}': "unexpected keyword argument 'resolution'",
        '{"size": 224}': "int",
        '{"layout": "CHW"}': "layout must be NCHW or NHWC",
        '{"mean": [0, 0, 1]}': "declare their range",
        "{": "Expecting property name",
    }.items():
        beside.write_text(said)
        with pytest.raises(FidError, match=message):
            declared(path)


def test_builtins_are_fitted_to_the_reference_and_kept_in_it(tmp_path: Path) -> None:
    np.savez(tmp_path / "n.npz", images=IMAGES, labels=(IMAGES[:, 0, 0, 0] > 127).astype(int))
    source = Files(tmp_path / "n.npz")
    for name, dimension in {"pixels": 48, "pca-5": 5, "classifier": 64}.items():
        features = for_reference(name, source, Loading())
        assert (features.name, features.dimension, features.published) == (name, dimension, False)
        again = for_calc(name, reference_of(features), Loading())
        assert again.hash == features.hash
        np.testing.assert_array_equal(again(IMAGES), features(IMAGES))
        with pytest.raises(FidError, match="the images are 4×2×3, the reference's 4×4×3"):
            features(IMAGES[:, :, :2])
    ours, theirs = for_reference("pca-5", source, Loading())(IMAGES), principal_features(to_float(IMAGES), 5)
    np.testing.assert_allclose(np.abs(ours), np.abs(theirs(to_float(IMAGES))), atol=1e-9)
    pixels = reference_of(for_reference("pixels", source, Loading()))
    with pytest.raises(FidError, match="--features pca-5, but the reference is of pixels"):
        for_calc("pca-5", pixels, Loading())
    with pytest.raises(FidError, match="pca-49: the images have 48 values"):
        for_reference("pca-49", source, Loading())
    np.savez(tmp_path / "large.npz", images=np.zeros((2, 64, 64, 3), np.uint8))
    with pytest.raises(FidError, match="of 12288 values, more than 4096"):
        for_reference("pixels", Files(tmp_path / "large.npz"), Loading())
    np.savez(tmp_path / "plain.npz", images=IMAGES)
    with pytest.raises(FidError, match="fitted to labelled images"):
        for_reference("classifier", Files(tmp_path / "plain.npz"), Loading())
