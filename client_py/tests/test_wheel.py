"""The two wheels, of the package and of the server, in environments of their own: no Go, no compiler, no PATH, nothing
of this repository.

As part of `make test` they are made of bin/anisoflight, and what they depend on is linked from this environment.
`make test-wheel` has the wheels that `make wheel` built, and pip brings what they depend on from the package index.
"""

import doctest
import email.message
import email.parser
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import hatch_build
import numpy as np
import pytest
from packaging.requirements import Requirement
from packaging.tags import sys_tags
from packaging.utils import parse_wheel_filename
from PIL import Image

import anisoflight
from anisoflight.serving.local import find_binary

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
BUILT = os.environ.get("ANISOFLIGHT_TEST_WHEEL")

PICTURES = """
import json, sys
import numpy as np
import anisoflight

images = np.random.default_rng(0).random((64, 8, 8, 1), np.float32) * 2 - 1
with anisoflight.serve(data=sys.argv[1]) as client:
    client.put_dataset("noise", images, np.arange(64) % 4)
    client.make_mixture("mixture", "noise")
    samples = client.sample("mixture", n=4, nfe=5, second_point="endpoint")
    print(json.dumps([anisoflight.__version__, samples.images.shape, int(np.ptp(samples.images))]))
"""


PLANS = """
import sys
import anisoflight
import numpy as np

plan = anisoflight.Plan.load(sys.argv[1])

def network(x, sigma):
    return x * 0.25 / (0.25 + sigma[:, None, None, None] ** 2)

samples = plan(network, np.ones((2, 1, 8, 8)), progress=False)
assert samples.shape == (2, 1, 8, 8) and np.ptp(samples) == 0 and 0.3 < samples.max() < 0.7, samples
print(sorted({"pandas", "pyarrow", "torch", "tqdm"} & set(sys.modules)))
"""


NOTEBOOK = """
import contextlib, io, json, shutil, sys
from pathlib import Path
from matplotlib import pyplot

names, shown, folder = {"__name__": "__main__"}, [], Path(sys.argv[2])
for cell in json.loads(Path(sys.argv[1]).read_text())["cells"]:
    if cell["cell_type"] == "code":
        printed, before = io.StringIO(), len(pyplot.get_fignums())
        with contextlib.redirect_stdout(printed):
            exec("".join(cell["source"]), names)
        shown.append([printed.getvalue(), len(pyplot.get_fignums()) - before])
for number in pyplot.get_fignums():
    pyplot.figure(number).savefig(folder / f"{number}.png")
places = sorted({str(Path(module.__file__).parent) for name, module in sys.modules.items() if "anisoflight" in name})
print(json.dumps({"shown": shown, "go": shutil.which("go"), "places": places}))
"""
"""Runs a notebook's code and keeps its pictures in a folder; prints what each cell printed, and how many it drew."""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel of the package, for any system, and that of the server."""
    folder = ROOT / "dist"
    if not BUILT:
        folder = tmp_path_factory.mktemp("wheel")
        command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
        variables = {"ANISOFLIGHT_WHEEL_BINARY": str(ROOT / "bin/anisoflight")}
        sources = [str(ROOT / "client_py"), str(ROOT / "client_py/server")]
        subprocess.run([*command, "-w", str(folder), *sources], check=True, env={**os.environ, **variables})
    version = BUILT or (ROOT / "client_py/anisoflight/VERSION").read_text().strip()
    (server,) = folder.glob(f"anisoflight_server-{version}-*x86_64.whl")
    return folder / f"anisoflight-{version}-py3-none-any.whl", server


def empty(folder: Path) -> list[str]:
    """Make an environment without packages; returns the command that installs some."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    return [sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), "install", "-q"]


def link(environment: Path, names: Iterable[str]) -> None:
    """Put packages of this environment into another."""
    (site,) = environment.glob("lib/python3*/site-packages")
    for name in names:
        for path in {file.parts[0] for file in importlib.metadata.files(name) or () if file.parts[0] != ".."}:
            if path != "__pycache__" and not (site / path).exists():
                (site / path).symlink_to(str(importlib.metadata.distribution(name).locate_file(path)))


@pytest.fixture(scope="module")
def environment(wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with both wheels and what they ask for."""
    folder = tmp_path_factory.mktemp("environment")
    pip = empty(folder)
    if BUILT:
        subprocess.run([*pip, "--find-links", str(wheels[0].parent), f"anisoflight[server]=={BUILT}"], check=True)
        return folder
    subprocess.run([*pip, *map(str, wheels), "--no-deps", "--no-index"], check=True)
    asked = [line for wheel in wheels for line in metadata(wheel).get_all("Requires-Dist", [])]
    link(folder, dependencies(map(Requirement, asked)))
    return folder


def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return email.parser.BytesParser().parsebytes(archive.read(name))


def dependencies(asked: object) -> set[str]:
    """The packages that requirements name, and theirs in turn, as they are installed here."""
    found: set[str] = set()
    waiting = list(asked)  # type: ignore[call-overload]
    while waiting:
        requirement = waiting.pop()
        if requirement.name in found or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        assert requirement.specifier.contains(importlib.metadata.version(requirement.name)), requirement
        found.add(requirement.name)
        waiting += map(Requirement, importlib.metadata.requires(requirement.name) or ())
    return found


def call(environment: Path, *arguments: str) -> str:
    """Runs a program of the environment, with nothing on the PATH and nothing of this repository."""
    variables = {
        "PATH": "",
        "HOME": str(environment),
        "ANISOFLIGHT_PROGRAM_CACHE": os.environ.get("ANISOFLIGHT_PROGRAM_CACHE", ""),
    }
    variables = {name: value for name, value in variables.items() if value or name == "PATH"}
    command = [str(environment / "bin" / arguments[0]), *arguments[1:]]
    done = subprocess.run(
        command, cwd=environment, env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def test_the_server_is_for_this_platform_and_brings_the_plugin(wheels: tuple[Path, Path]) -> None:
    package, server = wheels
    _, number, _, tags = parse_wheel_filename(server.name)
    assert tags & set(sys_tags())
    assert {tag.interpreter + "-" + tag.abi for tag in tags} == {"py3-none"}
    described = metadata(server)
    assert described["Version"] == str(number)
    (plugin,) = (line for line in described.get_all("Requires-Dist", []) if line.startswith(hatch_build.PLUGIN))
    assert re.sub(r"[\s\"']", "", plugin) == re.sub(
        r"[\s\"']", "", hatch_build.pinned(ROOT / "client_py/requirements.txt", hatch_build.PLUGIN)
    )
    described = metadata(package)
    assert described["Version"] == str(number)
    assert {"server", "notebook", "torch", "cuda"} <= set(described.get_all("Provides-Extra", []))
    (asked,) = (
        requirement
        for line in described.get_all("Requires-Dist", [])
        if (requirement := Requirement(line)).name == "anisoflight-server"
    )
    assert asked.specifier.contains(number, prereleases=True)


def test_plans_need_numpy_alone(wheels: tuple[Path, Path], tmp_path: Path) -> None:
    """Without pyarrow, pandas, tqdm and the server a plan is loaded and followed, and few says what is missing."""
    subprocess.run([*empty(tmp_path / "e"), str(wheels[0]), "--no-deps", "--no-index"], check=True)
    link(tmp_path / "e", ["numpy", "safetensors"])
    with anisoflight.serve(data=tmp_path / "data") as client:
        client.plan("edm", sigma_min=0.002, sigma_max=80, solver="ipndm", nfe=5).save(tmp_path / "plan.json")
    found = call(tmp_path / "e", "python", "-c", PLANS, str(tmp_path / "plan.json"))
    assert found.strip() == "[]"
    link(tmp_path / "e", dependencies([Requirement("pyarrow"), Requirement("pandas"), Requirement("tqdm")]))
    asked = "import anisoflight\ntry: anisoflight.serve()\nexcept RuntimeError as error: print(error)"
    found = call(tmp_path / "e", "python", "-c", asked)
    assert 'pip install "anisoflight[server]"' in found
    assert "client=anisoflight.connect(" in found


def check_notebook(name: str, environment: Path, folder: Path) -> None:
    """It shows what is stored in it, except the digits of small numbers; its pictures are not blank."""
    notebook = ROOT / "client_py/notebooks" / f"{name}.ipynb"
    copied = folder / notebook.name
    copied.write_bytes(notebook.read_bytes())
    found = json.loads(call(environment, "python", "-c", NOTEBOOK, str(copied), str(folder)))
    assert found["go"] is None
    assert all(place.startswith(f"{environment}{os.sep}") for place in found["places"])
    cells = [cell for cell in json.loads(copied.read_text())["cells"] if cell["cell_type"] == "code"]
    for cell, (printed, drawn) in zip(cells, found["shown"], strict=True):
        stored = "".join("".join(output["text"]) for output in cell["outputs"] if output.get("name") == "stdout")
        assert re.sub(r"\de-\d", "", printed) == re.sub(r"\de-\d", "", stored)
        assert drawn == sum("image/png" in output.get("data", {}) for output in cell["outputs"])
    pictures = [np.asarray(Image.open(path).convert("L"), float) for path in folder.glob("*.png")]
    assert len(pictures) == sum(drawn for _, drawn in found["shown"]) > 0
    assert all(picture.std() > 10 for picture in pictures)


def test_a_plan_is_followed_in_a_notebook_with_the_package_alone(wheels: tuple[Path, Path], tmp_path: Path) -> None:
    """Without the program, pandas and pyarrow; the plan in it is the one that the program makes."""
    subprocess.run([*empty(tmp_path / "e"), str(wheels[0]), "--no-deps", "--no-index"], check=True)
    link(tmp_path / "e", dependencies(map(Requirement, ["numpy", "safetensors", "matplotlib"])))
    check_notebook("a-plan", tmp_path / "e", tmp_path)
    cells = json.loads((tmp_path / "a-plan.ipynb").read_text())["cells"]
    (source,) = (source for cell in cells if "five = " in (source := "".join(cell["source"])))
    stored = json.loads(source.split('"""')[1])
    with anisoflight.serve(data=tmp_path / "data") as client, pytest.warns(match="begins at noise level 20"):
        made = client.plan("edm", sigma_min=0.002, sigma_max=20, solver="unipc", order=2, nfe=5).file
    for key, value in stored.items():
        if key != "stages":
            assert value == made[key], key
    for mine, theirs in zip(stored["stages"], made["stages"], strict=True):
        for key in ("g", "alpha", "beta"):
            np.testing.assert_allclose(mine[key], theirs[key], rtol=1e-6)


def test_a_notebook_with_a_server_needs_the_wheels_alone(environment: Path, tmp_path: Path) -> None:
    link(environment, dependencies(map(Requirement, ["matplotlib", "scikit-learn"])))
    check_notebook("your-own-solver", environment, tmp_path)


def test_the_installed_program_and_package_work_together(
    environment: Path, wheels: tuple[Path, Path], tmp_path: Path
) -> None:
    """The package starts the program that came with it; both find the plugin that pip put beside them."""
    number, shape, contrast = json.loads(call(environment, "python", "-c", PICTURES, str(tmp_path / "data")))
    assert number == metadata(wheels[0])["Version"]
    assert shape == [4, 8, 8, 1]
    assert contrast > 50
    device = json.loads(call(environment, "anisoflight", "doctor", "--json"))["device"]
    assert device["plugin"].startswith(str(environment)), device
    picture = tmp_path / "picture.png"
    call(environment, "anisoflight", "sample", "--data", str(tmp_path / "data"), "--model", "mixture", "--n", "4",
         "--nfe", "5", "--second-point", "endpoint", "--out", str(picture))  # fmt: skip
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    message = call(environment, "python", "-m", "anisoflight", "version")
    assert message == call(environment, "anisoflight", "version")
    assert message.split()[1].partition("+")[0] == number  # the program also names its commit between releases


def test_the_installed_program_goes_before_the_path(environment: Path) -> None:
    found = call(environment, "python", "-c", "from anisoflight.serving.local import find_binary; print(find_binary())")
    assert found.strip() == str(environment / "bin/anisoflight")
    assert find_binary() != found.strip()


def test_the_tag_of_a_program() -> None:
    assert doctest.testmod(hatch_build).failed == 0
    with pytest.raises(ValueError, match="program for Linux"):
        hatch_build.platform_tag(b"#!/bin/sh\nexec true\n")
    assert hatch_build.platform_tag((ROOT / "bin/anisoflight").read_bytes()).startswith("manylinux_2_")
