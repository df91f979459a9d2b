"""Every block of every document is done: run where that takes a moment, else checked word by word.

The documents share one server and one folder, in which the cell of docs/tutorial.md has trained its model. Where a
document says grpc+tls://, it reaches a server with TLS and tokens. What follows a command in SMALLER makes it cheap;
what is in `CHECKED` is not run, for the reason given there, but its options are parsed. With ANISOFLIGHT_SCREENSHOTS
set runs of Python are as long as the document says, and the pictures of `PICTURES` are kept in docs/images.
"""

import glob
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents import DOCUMENTS, LANGUAGES, ROOT, Block, anchors, blocks, commands, indented, links
from guarded import Guarded, guarded_server
from matplotlib import pyplot
from packaging.requirements import Requirement
from PIL import Image
from test_convert import CHECKPOINTS
from test_data_formats import python3_batch, tarred

import anisoflight
from anisoflight.data.__main__ import parser as data_parser
from anisoflight.fid.__main__ import parser as fid_parser
from anisoflight.serving.local import find_binary

pytestmark = pytest.mark.slow

IMAGES = ROOT / "docs" / "images"
KEEP = "ANISOFLIGHT_SCREENSHOTS" in os.environ
STEPS = 40
"""Of training, where a document says another number."""

SMALLER: list[tuple[str, list[str]]] = [
    (r"anisoflight train ", ["--kimg", "0.256"]),
    (r"anisoflight schedule predict ", ["--points", "4", "--samples", "4"]),
]

CHECKED: list[tuple[str, str]] = [
    (r"anisoflight-bench ", "measures for minutes; bench/ tests it"),
    (r"anisoflight doctor --device cuda", "needs a GPU"),
    (r"anisoflight fsck .*--repair", "needs the folder to itself"),
]


GUARDED = re.compile(r"(^|grpc\+tls://)(gpu1\.lab|localhost):8815")
"""The server with TLS and tokens, as the documents call it."""


class Place:
    """The folder in which the documents' blocks run, and the server of its data folder."""

    def __init__(self, folder: Path, client: anisoflight.LocalClient) -> None:
        self.folder = folder
        self.client = client
        self.names: dict[str, Any] = {}  # of the tutorial's cell, for the blocks of other documents
        paths = [str(folder / "tools"), str(ROOT / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        self.environment = {**os.environ, "PATH": os.pathsep.join(paths), "PYTHONPATH": str(ROOT / "client_py")}
        self._guarded: Guarded | None = None
        self._open = ExitStack()

    def guarded(self) -> Guarded:
        """A server with the certificate server.pem of the folder and with tokens, until the document's end."""
        if self._guarded is None:
            self._guarded = self._open.enter_context(guarded_server(self.folder))
            os.environ["ANISOFLIGHT_TOKEN"] = self.environment["ANISOFLIGHT_TOKEN"] = self._guarded.token
        return self._guarded

    def end_document(self) -> None:
        self._open.close()
        self._guarded = None
        for environment in (os.environ, self.environment):
            environment.pop("ANISOFLIGHT_TOKEN", None)

    def addressed(self, text: str) -> str:
        """The text with the servers, and the token, that there are in place of a document's."""
        text = GUARDED.sub(lambda found: f"{found[1]}{self.guarded().address}", text)
        text = text.replace("aniso_…", self._guarded.token if self._guarded else "")
        return re.sub(r"grpc://[a-z0-9.]+:8815", self.client.location, text)

    def python(self, block: Block, names: dict[str, Any]) -> None:
        code = self.addressed(block.code)
        code = code.replace('serve(data="data")', f'connect("{self.client.location}")')
        code = code.replace("connect()", f'connect("{self.client.location}")')
        if not KEEP:
            code = re.sub(r"\.step\([0-9]+\)", f".step({STEPS})", code)
            code = re.sub(r"\.start\((kimg=[0-9.]+)?\)", ".start(kimg=0.256)", code)
        code = code.replace('"cuda"', '"cpu"')
        compiled = compile(code, block.place, "exec")
        heavy = re.search(r"torch|diffusers|\bpipe\b", code)  # of packages that the tests do not need
        if heavy and find_spec("torch") is None:
            return
        names["client"] = self.client
        exec(compiled, names)

    def run(self, words: list[str], place: str, folder: str = ".") -> str:
        words = [self.addressed(word) for word in words]
        done = subprocess.run(
            words,
            cwd=self.folder / folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, f"{place}: {words}\n{done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("documents")
    for name in ("bench", "bin", "configs", "client_py", "flight", "internal", "studies", "go.mod"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "out").mkdir()
    downloads(folder)
    before = Path.cwd()
    os.chdir(folder)
    try:
        with anisoflight.serve(data=folder / "data", listen="127.0.0.1:0") as client:
            made = Place(folder, client)
            (folder / "tools").mkdir()
            cell = next(block for block in blocks("docs/tutorial.md") if "load_digits" in block.code)
            made.python(cell, made.names)
            yield made
    finally:
        os.chdir(before)


def downloads(folder: Path) -> None:
    """Small files in the formats and under the names of what the documents take from elsewhere."""
    for name in ("edm-cifar10-32x32-cond-vp.pkl", "network-snapshot-200000.pkl"):
        shutil.copy(CHECKPOINTS / "ddpmpp_torch2" / "snapshot.pkl", folder / name)
    at = folder / "downloads"
    for number, name in enumerate(
        ["afhqv2/train/cat", "afhqv2/train/dog", "ffhq/images1024x1024", "imagenet/train/n01"]
    ):
        (at / name).mkdir(parents=True)
        for image in range(2):
            pixels = np.random.default_rng(number).integers(0, 256, (64, 64, 3), np.uint8)
            Image.fromarray(pixels).save(at / name / f"{image}.png")
    np.save(at / "winds.npy", np.random.default_rng(0).normal(288, 20, (8, 4, 6, 2)))
    np.savez(at / "latents.npz", images=np.random.default_rng(0).normal(0, 5, (8, 4, 8, 8)).astype(np.float32))
    tarred(at / "cifar-10-python.tar.gz", "w:gz", {"data_batch_1": python3_batch([1, 2], [3, 4], 2)})


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_block_says_what_it_is(document: str) -> None:
    for block in blocks(document):
        assert block.language in LANGUAGES, f"{block.place}: a fence of {block.language or 'nothing'!r}"
        if block.language == "go":  # the command writes the program, and runs it
            assert any(["go", "run", "."] in commands(other) for other in blocks(document) if other.language == "sh")
    for block in indented(document):
        word = block.code.split(maxsplit=1)[0]
        assert word not in PROGRAMS, f"{block.place}: {word} in an indented block, which is not run; fence it as sh"


def test_the_readmes_server_gains(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its cell as it stands: what the search finds has clearly less of the distance than the best plain solver."""
    monkeypatch.chdir(tmp_path)
    cell = next(block for block in blocks("README.md") if "serve(" in block.code)
    names: dict[str, Any] = {}
    exec(compile(cell.code, cell.place, "exec"), names)
    with names["client"] as client:
        few, printed = names["plan"].info, capsys.readouterr().out.splitlines()
        assert ", 3 evaluations: better than" in few["summary"]
        assert printed[-2:] == [few["summary"], "few: 3 evaluations in 3 steps"]
        assert few["ratio"] + few["ratio_stderr"] < 1
        drawn = client.sample("photos", n=1, plan=anisoflight.Plan.load("photos-3.json"), progress=False)
        assert set(drawn.nfe) == {3}
        assert np.asarray(Image.open("photos.png")).std() > 30


@pytest.mark.parametrize("document", DOCUMENTS)
def test_blocks(document: str, place: Place) -> None:
    """Commands and Python in their order, but for servers, which are started last."""
    try:
        do_blocks(document, place)
    finally:
        place.end_document()


def do_blocks(document: str, place: Place) -> None:
    pyplot.close("all")
    names, last = {**place.names, "np": np, "model": lambda x, sigma: x / (1 + sigma**2)}, []
    if prepare := BEFORE.get(document):
        prepare(place)
    for block in blocks(document):
        if block.language == "python" and document not in ("README.md", "docs/tutorial.md"):
            place.python(block, names)
        for words in commands(block) if block.language == "sh" else ():
            program = Path(words[0]).name
            assert program in PROGRAMS, f"{block.place}: nothing here tries {words[0]!r}"
            task = (PROGRAMS[program], block.place, [program, *words[1:]])
            if "serve" in words:
                last.append(task)
            else:
                task[0](place, *task[1:])
    for run, where, words in last:
        run(place, where, words)
    if check := AFTER.get(document):
        check(names, place)
    for name, made in PICTURES.get(document, {}).items():
        pictured(document, name, made(names, place))


def pictured(document: str, name: str, made: Image.Image) -> None:
    """The page shows what its commands make, of the size that they make it, after more training than here."""
    file = IMAGES / f"{name}.png"
    if KEEP:
        made.save(file, optimize=True)
    assert f"images/{name}.png" in (ROOT / document).read_text(encoding="utf-8")
    assert file.stat().st_size < 100_000
    with Image.open(file) as kept:
        assert kept.size == made.size
        assert min(np.asarray(picture.convert("L")).std() for picture in (kept, made)) > 20


def figure(number: int) -> Image.Image:
    """One of the document's figures, in their order."""
    file = io.BytesIO()
    pyplot.figure(pyplot.get_fignums()[number]).savefig(file)
    return Image.open(file).convert("RGB")


def samples(names: dict[str, Any], _: Place) -> Image.Image:
    """In one row, four times as large, so that the page shows the pixels."""
    row = Image.fromarray(np.hstack(names["samples"].images[..., 0]))
    return row.resize((4 * row.width, 4 * row.height), Image.Resampling.NEAREST)


PICTURES: dict[str, dict[str, Callable[[dict[str, Any], Place], Image.Image]]] = {
    "client_py/README.md": {"client-samples": samples, "client-variances": lambda *_: figure(0)},
    "docs/learning.md": {"learning-reverse": lambda *_: figure(2)},
    "docs/schedules.md": {"schedules-five": lambda _, place: Image.open(place.folder / "out/five.png")},
    "docs/tutorial.md": {"tutorial-digits": lambda _, place: Image.open(place.folder / "digits.png")},
}
"""The pictures of a page by their names in docs/images."""


def certified(place: Place) -> None:
    """The certificate that another document makes."""
    make = next(words for block in blocks("docs/operation.md") for words in commands(block) if words[0] == "openssl")
    place.run(make, "docs/operation.md")


def called(names: dict[str, Any], place: Place) -> None:
    """The images of pyarrow and of the Go program are those of our own client, of the request in the document."""
    options = {name: value for name, value in names["ticket"].items() if name not in ("op", "model")}
    expected = place.guarded().client.sample(names["ticket"]["model"], **options).images
    assert names["images"].shape == (16, 8, 8, 1)
    assert (names["images"] == expected).all()
    assert np.ptp(expected) > 100
    with Image.open(place.folder / "sampler/digits.png") as sheet:
        assert (np.asarray(sheet) == expected.reshape(16 * 8, 8)).all()


def operated(names: dict[str, Any], place: Place) -> None:
    """The token of the document's client is the guarded server's; the backup has what the server has."""
    assert "digits" in names["client"].models().index
    copied = json.loads(place.run([find_binary(), "model", "list", "--data", "backup", "--json"], "the backup"))
    assert sorted(model["name"] for model in copied) == sorted(place.client.models().index)
    check_metrics(place)


def check_metrics(place: Place) -> None:
    """The table of docs/operation.md names every metric of a server, with its labels, and no other."""
    page = (ROOT / "docs/operation.md").read_text(encoding="utf-8")
    rows = page[page.index("| metric") :].partition("\n\n")[0].splitlines()[2:]
    listed = {
        f"anisoflight_{name}": set(filter(None, labels.split(",")))
        for row in rows
        for name, labels in re.findall(r"`(\w+){?([\w,]*)}?`", row.split("|")[1])
    }
    with anisoflight.serve(data=place.folder / "backup", arguments=["--metrics", "127.0.0.1:0"]) as client:
        client.sample("digits", n=1, steps=2)
        address = re.search(r"metrics on ([\d.:]+)", client.server.log)
        assert address
        with urllib.request.urlopen(f"http://{address[1]}/metrics") as reply:
            text = reply.read().decode()
    served = {
        name: set(re.findall(r'(\w+)="', next(re.finditer(rf"^{name}(?:_bucket)?[ {{].*$", text, re.M))[0])) - {"le"}
        for name in re.findall(r"^# TYPE (anisoflight_\w+)", text, re.M)
    }
    assert listed == served
    for name in re.findall(r"`(process_\w+)`", page):
        assert f"# TYPE {name} " in text, name


def alone(place: Place) -> None:
    """The package's README makes what the tutorial has made."""
    for delete in (place.client.delete_model, place.client.delete_dataset):
        delete("digits")


def weighted(names: dict[str, Any], place: Place) -> None:
    """Φ(g) = ∫ s/(1 + s) ds = g − ln(1 + g) of the weight 1/g, at the knots where it is not all rounding."""
    knots = place.client.schedule("weighted").knots()
    t, g = knots["t"].to_numpy(), knots["g"].to_numpy()
    expected = 6400 * (g - np.log1p(g)) / (6400 - np.log1p(6400))
    np.testing.assert_allclose(t[g > 1e-3], expected[g > 1e-3], rtol=1e-4)


BEFORE = {"client_py/README.md": alone, "docs/calling.md": certified}
AFTER = {"docs/calling.md": called, "docs/operation.md": operated, "docs/method.md": weighted}


def ours(place: Place, where: str, words: list[str]) -> None:
    """A command of anisoflight: its options are parsed, and it is run."""
    words, into = (words[: words.index(">>")], words[-1]) if ">>" in words else (words, None)
    if ">" in words:
        words = words[: words.index(">")]
    line = " ".join(words)
    binary = Path(find_binary()).with_name(words[0])
    words = (
        [word for part in words for word in (sorted(glob.glob(braces(part))) or [part])] if "configs" in line else words
    )
    plain = [word for word in words[1:] if not word.startswith("-")]
    if words[1] == "data":
        data_parser().parse_args(words[2:])
    else:
        output = place.run([str(binary), *words[1:], "--help"], where)
        assert re.search(rf"^Usage:\s+{words[0]} {plain[0] if plain else ''}", output, re.M | re.I), (
            f"{where}: no command {line}"
        )
    for part in words[1:]:
        assert not part.startswith("configs/") or (ROOT / part).exists(), f"{where}: {part} does not exist"
    if any(re.match(pattern, line) for pattern, _ in CHECKED):
        return
    more = next((extra for pattern, extra in SMALLER if re.match(pattern, line)), [])
    if words[1:2] == ["serve"]:  # with a folder of its own, on any port
        for option, value in {"--data": str(place.folder / "served"), "--listen": "127.0.0.1:0"}.items():
            if option in words and not words[words.index(option) + 1].startswith("unix:"):
                words[words.index(option) + 1] = value
        output = {"ANISOFLIGHT_DATA": str(place.folder / "served")}
        anisoflight.serve(binary=binary, arguments=words[2:], environment=output).close()
        return
    output = place.run([str(binary), *words[1:], *more], where)
    if into:
        (place.folder / into).write_text(output, encoding="utf-8")


def braces(pattern: str) -> str:
    """What a shell makes of {a,b}, as far as these documents go: any of them."""
    return re.sub(r"\{[^}]*\}", "*", pattern)


def python(place: Place, where: str, words: list[str]) -> None:
    """python -m anisoflight.…, or a script."""
    if words[1:2] != ["-m"]:
        script = next(
            place.folder / base / words[1] for base in ("", "client_py") if (place.folder / base / words[1]).exists()
        )
        place.run([sys.executable, str(script), "--help"], where)
        return
    module, arguments = words[2], words[3:]
    if module in ("venv", "anisoflight.torch") or module.startswith("bench_torch"):  # PyTorch is in another environment
        folder = "bench" if module.startswith("bench_torch") else "client_py"
        assert module == "venv" or (ROOT / folder / module.partition(".")[0]).is_dir()
        return
    if module == "anisoflight.fid":
        fid_parser().parse_args(arguments)
        if arguments[0] == "merge" or "--ray" in arguments:
            return  # test_fid_shards.py and fleet do both
        if "--features" not in arguments or arguments[arguments.index("--features") + 1].startswith("pca"):
            smaller = [re.sub(r"^0-1999,2000-3999$", "0-31,32-63", word) for word in arguments]
            place.run([sys.executable, "-m", module, *smaller, "--server", place.client.location, "--quiet"], where)
    elif module == "anisoflight.data":
        data_parser().parse_args(arguments)
    elif module == "anisoflight.convert":
        shutil.rmtree(place.folder / arguments[-1], ignore_errors=True)
        place.run([sys.executable, "-m", module, *arguments], where)
        place.client.load_model(Path(arguments[-1]).name)  # a server that was there before has to be told
    else:
        output = place.run([sys.executable, "-m", module, "--help"], where)
        assert all(word in output for word in arguments if word.startswith("-")), f"{where}: {words}"


def table(place: Place, where: str, words: list[str]) -> None:
    if (place.folder / words[1]).exists():
        assert "| method | nfe" in place.run([sys.executable, "-m", "anisoflight.fid.table", *words[1:]], where)


def make(place: Place, where: str, words: list[str]) -> None:
    """Its targets exist; what they do is what tests and the pipeline do."""
    done = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{where}: {done.stderr}"


def pip(place: Place, where: str, words: list[str]) -> None:
    with (ROOT / "client_py/pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"].keys()
    assert words[1] == "install"
    for word in words[2:]:
        if not word.startswith(("-", "$(ls dist/", "./")):
            asked = Requirement(word)
            assert asked.name != "anisoflight" or asked.extras <= extras, f"{where}: {word}"
        assert not word.startswith("./") or (ROOT / word).exists(), f"{where}: {word}"


def go(place: Place, where: str, words: list[str]) -> None:
    """A module of a reader's next to the clone, with the document's program; a tool; or packages of the repository."""
    if words[1] == "mod" or words[1:] == ["run", "."]:
        document = where.partition(":")[0]
        program = next(block.code for block in blocks(document) if block.language == "go")
        (place.folder / "sampler/main.go").write_text(place.addressed(program), encoding="utf-8")
        shutil.copy(place.folder / "server.pem", place.folder / "sampler")
        place.run([word.replace("=../anisoflight", f"={ROOT}") for word in words], where, "sampler")
    elif words[1] == "install":
        assert words[2] in (ROOT / "Containerfile").read_text(encoding="utf-8"), f"{where}: not the container's version"
        place.run(["env", f"GOBIN={place.folder / 'tools'}", *words], where)
    else:
        packages = [word for word in words if word.startswith("./")]
        assert packages, where
        assert all(word == "./..." or any((ROOT / word).glob("*.go")) for word in packages), where


def installed(place: Place, where: str, words: list[str]) -> None:
    """A program of the reader's machine, as it is."""
    place.run(words, where)


def launched(place: Place, where: str, words: list[str]) -> None:
    """What several processes do, as one; client_py/fleet starts them."""
    ours(place, where, words[words.index("anisoflight") :])


def nothing(place: Place, where: str, words: list[str]) -> None:
    """The shell's own, what a reader has before anything of this repository, and clusters and containers."""


PROGRAMS = {
    "anisoflight": ours,
    "anisoflight-bench": ours,
    "anisoflight-table": table,
    "cd": nothing,
    "cp": installed,
    "export": nothing,
    "git": nothing,
    "go": go,
    "grpc-health-probe": installed,
    "kubectl": nothing,
    "make": make,
    "mkdir": installed,
    "mpiexec": launched,
    "openssl": installed,
    "pip": pip,
    "podman": nothing,
    "python": python,
    "python3": python,
    "ray": nothing,
    "sbatch": nothing,
    "source": nothing,
    "srun": launched,
    "taskset": nothing,
}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_json_is_json(document: str) -> None:
    for block in blocks(document):
        if block.language == "json":
            json.loads(block.code)


@pytest.mark.parametrize(
    "document", [*DOCUMENTS, *(p.relative_to(ROOT).as_posix() for p in ROOT.glob("client_py/notebooks/*.ipynb"))]
)
def test_links_lead_somewhere(document: str) -> None:
    path = ROOT / document
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join(
            "".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"
        )
    for link in links(text):
        if link.startswith(("https://", "http://")):
            continue
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path
        assert target.exists(), f"{document}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{document}: {link} has no such heading"
