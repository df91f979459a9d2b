"""The examples in the doc strings, run against the server."""

import doctest
import importlib
import pkgutil
from pathlib import Path

import numpy as np
import pytest

import anisoflight
from anisoflight import convert, data, fid, files, operations, plans, serving, wire

ELSEWHERE = ("anisoflight.diffusers",)
"""These need packages that only `make test-integration` has."""

MODULES = [
    name
    for package in (anisoflight, convert, data, fid, files, operations, plans, serving, wire)
    for _, name, is_package in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
    if not is_package and name not in ELSEWHERE and (not name.endswith("__main__") or package in (data, fid))
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str, client: anisoflight.Client, tmp_path: Path) -> None:
    names = {"client": client, "np": np, "folder": tmp_path}
    result = doctest.testmod(
        importlib.import_module(name),
        extraglobs=names,
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.FAIL_FAST,
    )
    assert result.failed == 0
