"""The version of this repository: its tag. The Makefile gives it to the Go program, pyproject.toml to the package.

On the tag v0.2.0 it is ``0.2.0``, five commits after it ``0.2.0.post5+g1a2b3c4``, with changes that are not committed
``0.2.0.post5+g1a2b3c4.dirty``; before the first tag ``0.0.dev1042+g1a2b3c4``. Where there is no repository, as in a
container, ``ANISOFLIGHT_VERSION`` says it.
"""

from __future__ import annotations

import os
import re
import subprocess
from email.parser import HeaderParser
from pathlib import Path

HERE = Path(__file__).resolve().parent
_DESCRIBED = re.compile(r"v(?P<tag>[0-9][0-9a-z.]*)-(?P<count>[0-9]+)-(?P<commit>g[0-9a-f]+)(?P<dirty>-dirty)?")


def version() -> str:
    """The version, in the form of PEP 440."""
    if said := os.environ.get("ANISOFLIGHT_VERSION"):
        return said
    if (metadata := HERE / "PKG-INFO").exists():  # a source distribution knows its own
        return HeaderParser().parsestr(metadata.read_text(encoding="utf-8"))["Version"]
    described = _git("describe", "--tags", "--match", "v[0-9]*", "--long", "--dirty")
    if not described:
        commit, _, dirty = _git("describe", "--always", "--exclude", "*", "--dirty").partition("-")
        described = f"v0.0-{_git('rev-list', '--count', 'HEAD')}-g{commit}{dirty and '-' + dirty}" if commit else ""
        return _spell(described, "dev") if described else "0.0.dev0+unknown"
    return _spell(described, "post")


def _spell(described: str, word: str) -> str:
    """What git describes as TAG-COUNT-COMMIT[-dirty], in the form of PEP 440.

    >>> _spell("v0.2.0-0-g1a2b3c4", "post"), _spell("v0.2.0-5-g1a2b3c4-dirty", "post")
    ('0.2.0', '0.2.0.post5+g1a2b3c4.dirty')
    """
    found = _DESCRIBED.fullmatch(described)
    if found is None:
        raise ValueError(f"the tag of {described} is no version; tag releases as v1.2.3")
    if found["count"] == "0" and not found["dirty"]:
        return found["tag"]
    return f"{found['tag']}.{word}{found['count']}+{found['commit']}{'.dirty' if found['dirty'] else ''}"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=HERE, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


if __name__ == "__main__":
    print(version())
