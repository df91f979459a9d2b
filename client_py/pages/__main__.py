"""Lays the repository's documents out for MkDocs, under their own paths so that their links hold, and builds the site.

The reference of the Python package comes from its docstrings, that of the Go packages from ``go doc``. A link that
leads nowhere, a page that is in no menu, or any other warning fails the build.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat

import anisoflight

ROOT = Path(__file__).parents[2]

REFERENCE = {
    "Client": ["Client", "connect", "serve"],
    "Samples and data sets": ["Samples", "Dataset"],
    "Schedules and plans": ["Schedule", "Plan"],
    "Runs": ["Run"],
    "Figures": ["figures"],
    "Widgets": ["widgets.Previews", "widgets.LossCurve"],
    "Image files": ["data"],
    "EDM checkpoints": ["convert"],
    "Fréchet distances": ["moments", "fid.builtin", "fid"],
    "Networks of torch": ["torch.Denoiser", "torch.few"],
    "Loops of your own, diffusers": ["plans.plan.Stages", "diffusers"],
    "Errors": ["errors"],
}
"""The Python package's pages, and the names on each."""

GO = ["flight", "flight/api", "flight/client", "schedule", "schedule/basis", "schedule/solver", "kernels", "train"]

NOTEBOOKS = re.findall(r"\(\S+/([\w-]+)\.ipynb\)", (ROOT / "docs/tutorial.md").read_text(encoding="utf-8"))
"""The notebooks, in the tutorial's order."""


def lay_out(stage: Path) -> None:
    """Copies of the documents, notebooks as pages, the pages of the reference, and the package that they show."""
    for pattern in ("*.md", "LICENSE", "client_py/*.md", "docs/**/*", "bench/*.md", "studies/*.md", "*/docs/*"):
        for path in ROOT.glob(pattern):
            if path.is_file():
                target = stage / path.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
    for notebook in ROOT.glob("client_py/notebooks/*.ipynb"):
        path = (stage / notebook.relative_to(ROOT)).with_suffix(".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page_of(notebook), encoding="utf-8")
    for path in stage.rglob("*.md"):
        path.write_text(relinked(path.relative_to(stage), path.read_text(encoding="utf-8")), encoding="utf-8")
    (stage / "reference/python").mkdir(parents=True)
    (stage / "reference/go").mkdir()
    for title, names in REFERENCE.items():
        body = "\n\n".join(f"::: anisoflight.{name}" for name in names)
        (stage / "reference/python" / f"{slug(title)}.md").write_text(f"# {title}\n\n{body}\n", encoding="utf-8")
    package = shutil.copytree(ROOT / "client_py/anisoflight", stage.parent / "package/anisoflight")
    for path in package.rglob("*.py"):
        path.write_text(fenced(path.read_text(encoding="utf-8")), encoding="utf-8")
    for package in GO:
        done = subprocess.run(
            ["go", "doc", "-all", f"./{package}"], cwd=ROOT, check=True, capture_output=True, text=True
        )
        text = f"# {package}\n\n````go\n{done.stdout}````\n"
        (stage / "reference/go" / f"{slug(package)}.md").write_text(text, encoding="utf-8")


def page_of(notebook: Path) -> str:
    """A notebook as Markdown: its text, and its code in blocks."""
    cells = nbformat.read(notebook, as_version=4).cells
    return "\n\n".join(f"```python\n{c.source}\n```" if c.cell_type == "code" else c.source for c in cells) + "\n"


def fenced(source: str) -> str:
    """Python source with the examples of its docstrings in fences. Without them Markdown reads >>> as quotations."""
    example = r'^( *)>>> .*(?:\n(?! *$| *""").+)*'
    return re.sub(example, r"\1```pycon\n\g<0>\n\1```", source, flags=re.MULTILINE)


def relinked(page: Path, text: str) -> str:
    """The text with links to notebooks and to the Go client's folder as links to their pages."""
    text = re.sub(r"(\]\([^()\s]*)\.ipynb(#[^()\s]*)?\)", r"\1.md\2)", text)
    client = "../" * (len(page.parts) - 1) + "reference/go/flight-client.md"
    return re.sub(r"\]\((?:\.\./)*flight/client\)", f"]({client})", text)


def slug(title: str) -> str:
    return re.sub(r"[^a-z]+", "-", title.lower().replace("é", "e"))


def settings(stage: Path, out: Path) -> dict[str, Any]:
    """What MkDocs is told."""
    documents = [
        {"Start": "README.md"},
        {"Installation": "docs/installation.md"},
        {"Tutorial": ["docs/tutorial.md", *(f"client_py/notebooks/{name}.md" for name in NOTEBOOKS)]},
        {"Guides": ["client_py/README.md", *(f"docs/{name}.md" for name in
            ("data", "schedules", "learning", "checkpoints", "networks", "speech-and-robots", "recipes", "fid",
             "operation", "scale", "durability", "calling", "wire"))]},
        {"Method and results": ["docs/method.md", "docs/results.md", "docs/comparing.md"]},
        {"Studies": ["studies/README.md", *pages(stage, "studies/docs")]},
        {"Costs": ["bench/README.md", *pages(stage, "bench/docs")]},
        {"Python": [{title: f"reference/python/{slug(title)}.md"} for title in REFERENCE]},
        {"Go": [{package: f"reference/go/{slug(package)}.md"} for package in GO]},
        {"Development": ["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"]},
    ]  # fmt: skip
    handler = {
        "paths": [str(stage.parent / "package")],
        "options": {
            "inherited_members": True,
            "show_root_heading": True,
            "show_source": False,
            "members_order": "source",
            "show_if_no_docstring": False,
            "docstring_style": "sphinx",
        },
    }
    return {
        "site_name": f"anisoflight {anisoflight.__version__}",
        "docs_dir": str(stage),
        "site_dir": str(out.resolve()),
        "use_directory_urls": False,  # the pages can be opened as files
        "strict": True,
        "validation": {"nav": {"omitted_files": "warn"}, "links": {"anchors": "warn", "unrecognized_links": "warn"}},
        "nav": documents,
        "theme": {"name": "material", "font": False, "features": ["navigation.sections", "navigation.top"]},
        "markdown_extensions": ["tables", "toc", "pymdownx.superfences", "pymdownx.highlight"],
        "plugins": ["search", {"mkdocstrings": {"handlers": {"python": handler}}}],
        "exclude_docs": "LICENSE",
    }


def pages(stage: Path, folder: str) -> list[str]:
    return sorted(path.relative_to(stage).as_posix() for path in (stage / folder).glob("*.md"))


def build(stage: Path, out: Path, *, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """The site of what is laid out. MkDocs counts warnings as failures only where it prints them: no -q."""
    config = stage.parent / "mkdocs.yml"
    config.write_text(json.dumps(settings(stage, out)), encoding="utf-8")  # JSON is YAML
    command = [sys.executable, "-m", "mkdocs", "build", "-f", config]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}  # Material's advertisement
    return subprocess.run(command, env=environment, check=False, capture_output=capture, text=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m pages", description=__doc__)
    parser.add_argument("out", type=Path, help="folder of the site")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        stage = Path(folder) / "documents"
        lay_out(stage)
        return build(stage, out).returncode


if __name__ == "__main__":
    sys.exit(main())
