"""``python client_py/tests/notebooks.py quickstart fid``: run notebooks, and store their outputs.

It needs what `make notebook` installs. Progress bars are left out: they are different in every run.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat

FOLDER = Path(__file__).parents[1] / "notebooks"


def refresh(path: Path) -> None:
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to=notebook", "--execute", "--inplace", str(path)]
    options = {"store_widget_state": False, "record_timing": False}
    subprocess.run(
        [*command, *(f"--ExecutePreprocessor.{name}={value}" for name, value in options.items())], check=True
    )
    tidy(path)


def tidy(path: Path) -> None:
    """Remove progress bars, names of temporary folders, and what a notebook knows of the Python that ran it."""
    notebook: Any = nbformat.read(path, as_version=4)
    notebook.metadata.language_info = {"name": "python", "version": "3.11"}
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not progress(output)]
            for output in cell.outputs:
                if "text" in output:
                    output.text = re.sub(rf"{tempfile.gettempdir()}/\w+/", "", output.text)
    nbformat.write(notebook, path)


def progress(output: Any) -> bool:
    return output.get("name") == "stderr" or any("widget" in kind for kind in output.get("data", {}))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        refresh(FOLDER / f"{name}.ipynb")
