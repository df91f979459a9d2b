"""What the package is made of: its modules import in one direction, and its wheel holds them alone."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "anisoflight"


def test_the_wheel_holds_the_package_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "-w", str(tmp_path), str(ROOT)], check=True)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = (path.relative_to(ROOT) for path in PACKAGE.rglob("*") if path.is_file())
    assert files == {path.as_posix() for path in source if "__pycache__" not in path.parts}
    assert {"anisoflight/serving/client.py", "anisoflight/py.typed", "anisoflight/fid/published.json"} <= files
