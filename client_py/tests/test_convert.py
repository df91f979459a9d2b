"""The converter: EDM's files in, model folders out, bit for bit; and served, they compute what EDM's network does."""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pickles
import pytest
from safetensors.numpy import load_file

import anisoflight
from anisoflight.convert import BadModelError, UnsupportedNetworkError, convert
from anisoflight.convert.__main__ import main
from anisoflight.convert.folder import verify
from anisoflight.errors import NameTakenError, ServerStartError
from anisoflight.serving.local import model_report

CHECKPOINTS = Path(__file__).parent / "testdata" / "checkpoints"
NETWORKS = Path(__file__).parents[2] / "internal" / "testing" / "fixtures" / "testdata" / "networks"
CASES = ["ddpmpp_torch112", "ddpmpp_torch2"]  # snapshots that torch 1.12 and torch 2 wrote
FAMILIES = ["ddpmpp", "ncsnpp", "adm"]


def case_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "case.json").read_text())


def weights(model: Path) -> dict[str, pickles.Array]:
    return load_file(model / "model.safetensors")


def config_of(model: Path) -> dict[str, Any]:
    return json.loads((model / "config.json").read_text())


def network_case(name: str) -> tuple[dict[str, Any], dict[str, pickles.Array]]:
    """Configuration and state dict of a network of the fixtures."""
    folder = NETWORKS / name
    return case_of(folder)["config"], load_file(folder / "weights.safetensors")


def snapshot(folder: Path, value: Any, protocol: int = 4) -> Path:
    path = folder / "snapshot.pkl"
    path.write_bytes(pickles.dumps(value, protocol))
    return path


@pytest.mark.parametrize("name", CASES)
def test_snapshots_convert_to_the_last_bit(name: str, tmp_path: Path) -> None:
    case = case_of(CHECKPOINTS / name)
    made = convert(CHECKPOINTS / name / "snapshot.pkl", tmp_path / "m", progress=False)
    digests = {
        key: {"shape": list(values.shape), "sha256": hashlib.sha256(values.tobytes()).hexdigest()}
        for key, values in weights(made.target).items()
    }
    assert digests == case["tensor_digests"]
    again = convert(CHECKPOINTS / name / "snapshot.pkl", tmp_path / "again", check=False, progress=False)
    assert again.weights_sha256 == made.weights_sha256  # the same bytes each time
    assert config_of(made.target) == case["expected_config"] == made.config
    assert made.weights_sha256 == hashlib.sha256((made.target / "model.safetensors").read_bytes()).hexdigest()
    assert made.tensors == len(digests)
    assert made.parameters == sum(v.size for k, v in weights(made.target).items() if "resample_filter" not in k)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "m"]  # nothing beside them


@pytest.mark.parametrize("name", CASES)
def test_served_it_denoises_as_in_torch(name: str, server: anisoflight.LocalClient, data_folder: Path) -> None:
    folder = CHECKPOINTS / name
    case, io = case_of(folder), load_file(folder / "io.safetensors")
    model = name.replace("_", "-")
    made = convert(folder / "snapshot.pkl", data_folder / "models" / model, progress=False)
    loaded = server.load_model(model)
    assert loaded["hash"] == made.weights_sha256
    x = np.ascontiguousarray(np.moveaxis(io["x"], 1, 3), np.float32)
    labels = [int(np.argmax(row)) if row.any() else -1 for row in io["class_labels"]]
    got = server.denoise(model, x, io["sigma"].reshape(-1), labels=labels).denoised
    want = np.moveaxis(io["D"], 1, 3)
    tolerance = max(10 * case["measured_float32"]["D_rel_max"], 5e-6)  # as the fixtures recommend
    assert np.abs(got - want).max() <= tolerance * np.abs(want).max()


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("form", ["pickle", "protocol 2", "zip", "legacy"])
def test_every_network_in_every_format(name: str, form: str, tmp_path: Path) -> None:
    """Parameters share one storage in torch's own files, and lie at offsets of it."""
    config, state = network_case(name)
    flat = np.concatenate([values.reshape(-1) for values in state.values()])
    ends = np.cumsum([values.size for values in state.values()])
    if form in ("zip", "legacy"):
        held = pickles.storage(flat, "94850218110992")
        tensors = {
            key: pickles.tensor(values, held, int(end) - values.size)
            for (key, values), end in zip(state.items(), ends, strict=True)
        }
    else:
        tensors = {key: pickles.tensor(values) for key, values in state.items()}
    whole = {"ema": pickles.network(tensors, config), "cur_nimg": 5}
    storages = {"94850218110992": flat}
    source = tmp_path / "source"
    if form in ("zip", "legacy"):
        source.write_bytes({"zip": pickles.zipped, "legacy": pickles.legacy}[form](whole, storages))
    else:
        source.write_bytes(pickles.dumps(whole, 2 if form == "protocol 2" else 4))
    made = convert(source, tmp_path / "m", progress=False)
    assert made.verified
    got = weights(made.target)
    assert got.keys() == state.keys()
    for key, values in state.items():
        np.testing.assert_array_equal(got[key], values, key, strict=True)
    assert made.parameters == case_of(NETWORKS / name)["parameter_count"]


def test_views_of_storages(tmp_path: Path) -> None:
    """Transposed, strided, at an offset, of half precision, without values, without axes."""
    base = np.arange(24, dtype=np.float32)
    half = np.array([1.5, -65504, 2**-24], np.float16)
    held = pickles.loaded(base)
    tensors = {
        "model.transposed": pickles.tensor(np.empty((4, 6), np.float32), held, 0, (1, 4)),
        "model.strided": pickles.tensor(np.empty(5, np.float32), held, 3, (2,)),
        "model.channels_last": pickles.tensor(np.empty((2, 3, 2, 2), np.float32), held, 0, (12, 1, 6, 3)),
        "model.half": pickles.tensor(half),
        "model.empty": pickles.tensor(np.empty((0, 3), np.float32)),
        "model.scalar": pickles.tensor(np.array(7, np.float32)),
    }
    config = {"img_resolution": 8, "img_channels": 3, "model_type": "SongUNet"}
    made = convert(snapshot(tmp_path, {"ema": pickles.network(tensors, config)}), tmp_path / "m", check=False)
    got = weights(made.target)
    want = {
        "model.transposed": base.reshape(6, 4).T,
        "model.strided": base[3:13:2],
        "model.channels_last": np.moveaxis(base.reshape(2, 2, 2, 3), 3, 1),
        "model.half": half.astype(np.float32),
        "model.empty": np.empty((0, 3), np.float32),
        "model.scalar": np.array(7, np.float32),
    }
    for key, values in want.items():
        np.testing.assert_array_equal(got[key], values, key, strict=True)


def test_configuration_is_read_from_any_arguments(tmp_path: Path) -> None:
    """Positional ones, numpy's numbers, tuples, infinity; EDM's own defaults for the rest, which are the server's."""
    dtype = pickles.Call(pickles.Name("numpy", "dtype"), ("f8", False, True), (3, "<", None, None, None, -1, -1, 0))
    half = pickles.Call(pickles.Name("numpy.core.multiarray", "scalar"), (dtype, np.float64(0.25).tobytes()))
    for kind, given in (("SongUNet", {"channel_mult": (1, 2)}), ("DhariwalUNet", {})):
        keywords = {"model_type": kind, "dropout": half, "sigma_max": float("inf"), "use_fp16": True, **given}
        inner = {"model": pickles.persistent(kind, _parameters={}, _buffers={}, _modules={})}
        made_with: dict[str, Any] = {"_init_args": (32, 3, 10), "_init_kwargs": keywords}
        net = pickles.persistent("EDMPrecond", **made_with, _parameters={}, _buffers={}, _modules=inner)
        made = convert(snapshot(tmp_path, net), tmp_path / kind, check=False)
        # What the server fills in where config.json is silent is what the converter writes.
        short = {"model_type": kind, "img_resolution": 32, "img_channels": 3, "label_dim": 10, "use_fp16": True}
        (tmp_path / "short").mkdir()
        (tmp_path / "short" / "config.json").write_text(json.dumps({**short, "dropout": 0.25, **given}))
        shutil.copy(made.target / "model.safetensors", tmp_path / "short")
        with pytest.raises(BadModelError, match="is missing"):
            verify(tmp_path / "short")
        assert model_report(tmp_path / "short")["config"] == made.config
        shutil.rmtree(tmp_path / "short")


def test_a_key_chooses_among_networks(tmp_path: Path) -> None:
    config, state = network_case("adm")
    tensors = {key: pickles.tensor(values) for key, values in state.items()}
    name = "model.enc.8x8_conv.weight"
    other = {**tensors, name: pickles.tensor(2 * state[name])}
    source = snapshot(
        tmp_path, {"ema": pickles.network(tensors, config), "net": pickles.network(other, config), "n": 1}
    )
    convert(source, tmp_path / "ema")
    convert(source, tmp_path / "net", key="net")
    np.testing.assert_array_equal(weights(tmp_path / "net")[name], 2 * weights(tmp_path / "ema")[name])
    with pytest.raises(ValueError, match=r"no network 'n'.*ema, net"):
        convert(source, tmp_path / "n", key="n")


def test_a_state_dict_takes_its_configuration_from_a_file(tmp_path: Path) -> None:
    config, state = network_case("ncsnpp")
    storages = {str(i): values.reshape(-1) for i, values in enumerate(state.values())}
    tensors = {
        key: pickles.tensor(values, pickles.storage(storages[str(i)], str(i)))
        for i, (key, values) in enumerate(state.items())
    }
    ordered = pickles.Call(pickles.ORDERED, (list(tensors.items()),), {"_metadata": {"": {"version": 1}}})
    source = tmp_path / "state.pt"
    source.write_bytes(pickles.zipped(ordered, storages))
    with pytest.raises(ValueError, match="--config"):
        convert(source, tmp_path / "m")
    (tmp_path / "config.json").write_text(json.dumps(config))
    made = convert(source, tmp_path / "m", config=tmp_path / "config.json")
    assert made.verified
    assert made.config["embedding_type"] == "fourier"
    for key, values in state.items():
        np.testing.assert_array_equal(weights(made.target)[key], values, key, strict=True)


@pytest.mark.parametrize(
    ("prefix", "under", "key"),
    [
        ("module.", None, None),
        ("_orig_mod.", "state_dict", None),
        ("_orig_mod.module.", "model_state_dict", "model_state_dict"),
        ("", "state_dict", "state_dict"),
    ],
)
def test_a_state_dict_of_a_wrapper_or_in_a_dict(
    prefix: str, under: str | None, key: str | None, tmp_path: Path
) -> None:
    config, state = network_case("adm")
    (tmp_path / "config.json").write_text(json.dumps(config))
    held: dict[str, Any] = {prefix + name: pickles.tensor(values) for name, values in state.items()}
    source = snapshot(tmp_path, held if under is None else {"epoch": 3, under: held})
    made = convert(source, tmp_path / "m", key=key, config=tmp_path / "config.json", progress=False)
    assert made.verified
    got = weights(made.target)
    assert got.keys() == state.keys()
    for name, values in state.items():
        np.testing.assert_array_equal(got[name], values, name, strict=True)
    with pytest.raises(ValueError, match="leave --key x out" if under is None else f"no network 'x'.* It has: {under}"):
        convert(source, tmp_path / "x", key="x", config=tmp_path / "config.json")


def test_a_prefix_of_some_names_stays(tmp_path: Path) -> None:
    config, state = network_case("adm")
    (tmp_path / "config.json").write_text(json.dumps(config))
    name = "model.out_conv.bias"
    held = {(f"module.{key}" if key == name else key): pickles.tensor(values) for key, values in state.items()}
    with pytest.raises(BadModelError, match=r"module\.model\.out_conv\.bias: is unknown"):
        convert(snapshot(tmp_path, held), tmp_path / "m", config=tmp_path / "config.json", progress=False)


def test_weights_that_do_not_fit_leave_nothing(tmp_path: Path) -> None:
    config, state = network_case("adm")
    bias = state["model.out_conv.bias"]
    cases: list[tuple[dict[str, Any], dict[str, pickles.Array], str]] = [
        ({"num_blocks": 2}, {}, r"model.enc.8x8_block1.norm0.weight: is missing"),
        ({"label_dim": 9}, {}, r"model.map_label.weight: has shape \[128 10\].*asks for \[128 9\]"),
        ({"img_resolution": 9}, {}, r"config.json: .*img_resolution"),
        ({}, {"model.extra": bias}, r"model.extra: is unknown"),
        (
            {},
            {"model.out_conv.bias": bias * np.float32(np.nan)},
            r"model.out_conv.bias holds values that are not finite",
        ),
        ({}, {"model.out_conv.bias": np.zeros(3, np.int64)}, r"model.out_conv.bias is of type int64"),
    ]
    for changed, spoiled, says in cases:
        tensors = {key: pickles.tensor(values) for key, values in {**state, **spoiled}.items()}
        source = snapshot(tmp_path, {"ema": pickles.network(tensors, {**config, **changed})})
        with pytest.raises(BadModelError, match=says) as caught:
            convert(source, tmp_path / "m")
        assert caught.value.code == "BAD_MODEL"
    assert [path.name for path in tmp_path.iterdir()] == ["snapshot.pkl"]


def test_folders_are_replaced_whole_and_on_demand(tmp_path: Path) -> None:
    source = CHECKPOINTS / CASES[0] / "snapshot.pkl"
    target = tmp_path / "m"
    convert(source, target, check=False)
    (target / "schedule.json").write_text("{}")
    with pytest.raises(NameTakenError, match="--replace"):
        convert(CHECKPOINTS / CASES[1] / "snapshot.pkl", target, check=False)
    before = weights(target)
    made = convert(CHECKPOINTS / CASES[1] / "snapshot.pkl", target, replace=True, check=False)
    assert sorted(path.name for path in target.iterdir()) == ["config.json", "model.safetensors"]
    assert not np.array_equal(weights(target)["model.map_label.bias"], before["model.map_label.bias"])
    assert made.weights_sha256
    other = tmp_path / "thesis"
    other.mkdir()
    (other / "thesis.tex").touch()
    with pytest.raises(NameTakenError, match="not a model folder"):
        convert(source, other, replace=True)
    assert (other / "thesis.tex").exists()


@pytest.mark.parametrize(
    ("class_name", "changed", "says"),
    [
        ("VPPrecond", {}, "(?s)baseline VP.*Accepted is EDMPrecond"),
        ("Precond", {}, "(?s)magnitude-preserving.*Accepted is EDMPrecond"),
        ("StackedRandomGenerator", {}, "(?s)class StackedRandomGenerator.*Accepted is EDMPrecond"),
        ("EDMPrecond", {"model_type": "DhariwalUNet", "encoder_type": "skip"}, "encoder_type"),
        ("EDMPrecond", {"model_type": "UNet"}, "class UNet"),
    ],
)
def test_other_networks_are_refused_by_name(
    class_name: str, changed: dict[str, Any], says: str, tmp_path: Path
) -> None:
    config = {"img_resolution": 8, "img_channels": 3, **changed}
    with pytest.raises(UnsupportedNetworkError, match=says) as caught:
        convert(snapshot(tmp_path, {"ema": pickles.network({}, config, class_name)}), tmp_path / "m")
    assert caught.value.code == "UNSUPPORTED_NETWORK"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = CHECKPOINTS / CASES[0] / "snapshot.pkl", tmp_path / "models" / "cifar"
    assert main([str(source), str(target)]) == 0
    output = capsys.readouterr().out
    count = f"{sum(v.size for k, v in weights(target).items() if 'resample_filter' not in k):,} parameters"
    hashes = [hashlib.sha256(file.read_bytes()).hexdigest() for file in (source, target / "model.safetensors")]
    for word in (count, "SongUNet, images 8×8×3, 3 classes", *hashes, "CC BY-NC-SA 4.0"):
        assert word in output
    assert main([str(source), str(target)]) == 1
    assert "pass --replace" in capsys.readouterr().err
    assert main([str(tmp_path / "none.pkl"), str(tmp_path / "x")]) == 1
    assert "No such file" in capsys.readouterr().err
    # Without a program to compare with, nothing is written unless that is wanted.
    monkeypatch.setenv("ANISOFLIGHT_BIN", str(tmp_path / "no-program"))
    assert main([str(source), str(tmp_path / "x")]) == 1
    assert "--no-verify" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
    assert main([str(source), str(tmp_path / "x"), "--no-verify"]) == 0
    assert "not compared" in capsys.readouterr().out
    with pytest.raises(ServerStartError):
        convert(source, tmp_path / "y")
