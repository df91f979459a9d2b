"""Hostile checkpoints: refused with a code, without executing, writing or exhausting anything."""

import multiprocessing.synchronize  # noqa: F401 (tqdm imports it with its first bar)
import os
import random
import resource
import struct
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pickles
import pytest
from pickles import Call, Name, Raw

from anisoflight.convert import ConvertError, convert
from anisoflight.convert.names import IN_CHECKPOINTS

pytestmark = pytest.mark.slow

SNAPSHOT = Path(__file__).parent / "testdata" / "checkpoints" / "ddpmpp_torch2" / "snapshot.pkl"
CONFIG = {"img_resolution": 8, "img_channels": 3, "model_type": "SongUNet"}


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    """A file that the payloads would make."""
    return tmp_path / "executed"


def refusal(folder: Path, data: bytes) -> ConvertError:
    """The error with which a file is refused, quickly, and with nothing written."""
    source = folder / "hostile.pkl"
    source.write_bytes(data)
    modules = set(sys.modules)
    with pytest.raises(ConvertError) as caught:
        convert(source, folder / "model", check=False, progress=False)
    assert sorted(os.listdir(folder)) == ["hostile.pkl"]
    imported = {name for name in set(sys.modules) - modules if not name.startswith("encodings.")}  # by zipfile
    assert not imported, "a refused file had something imported"
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    return caught.value


def outcome(folder: Path, data: bytes) -> str:
    """The code with which a file is refused, or "converted"."""
    source = folder / "doubtful.pkl"
    source.write_bytes(data)
    try:
        convert(source, folder / "model", check=False, progress=False, replace=True)
    except ConvertError as error:
        return error.code
    return "converted"


def hidden(value: Any) -> dict[str, Any]:
    """A sound network with something else in the same file."""
    return {"ema": pickles.network({}, CONFIG), "loss_fn": value}


EVIL = """
os:system posix:system nt:system subprocess:Popen builtins:eval builtins:exec builtins:getattr
builtins:__import__ builtins:compile __builtin__:eval importlib:import_module runpy:_run_code
functools:partial operator:attrgetter types:FunctionType marshal:loads pickle:loads copyreg:__newobj__
torch:load torch.hub:load torch.serialization:load torch.jit:load torch._utils:_rebuild_tensor numpy:load
numpy.testing._private.utils:runstring torch_utils.persistence:_src_to_module
torch_utils.persistence:import_hook dnnlib.util:call_func_by_name dnnlib.util:open_url
anisoflight.convert:convert
"""


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("asked", EVIL.split())
def test_names_are_refused_by_name(asked: str, protocol: int, tmp_path: Path, marker: Path) -> None:
    module, name = asked.split(":")
    payload = Call(Name(module, name), (f"open({str(marker)!r}, 'w')",))
    for value in (payload, hidden(payload), {"ema": Call(Name(module, name))}, [Name(module, name)]):
        error = refusal(tmp_path, pickles.dumps(value, protocol))
        assert error.code == "UNSAFE_PICKLE"
        assert f"{module}.{name}" in error.message


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("collections", "OrderedDict.fromkeys"),
        ("collections", "OrderedDict.__init__.__globals__"),
        ("numpy", "dtype.__class__"),
        ("torch.storage", "io.open"),
        ("torch.nn.modules.container.ModuleDict", "__init__"),
        ("collections.OrderedDict", "fromkeys"),
        ("Collections", "OrderedDict"),
        ("collections ", "OrderedDict"),
        ("collections\x00", "OrderedDict"),
        ("", ""),
        ("builtins", "type"),
        ("torch", "FloatStorage\u200b"),
        ("torch_utils.persistence", "_reconstruct_persistent_obj.__globals__"),
    ],
)
def test_names_are_matched_to_the_letter(module: str, name: str, tmp_path: Path) -> None:
    """No dotted names, no attributes of accepted ones, no look-alikes."""
    assert refusal(tmp_path, pickles.dumps(hidden(Name(module, name)))).code == "UNSAFE_PICKLE"


def test_nested_pickles_know_fewer_names(tmp_path: Path, marker: Path) -> None:
    evil = Call(Name("os", "system"), (f"touch {marker}",))
    error = refusal(tmp_path, pickles.dumps(hidden(Call(pickles.LOAD, (pickles.legacy(evil, {}),)))))
    assert (error.code, "os.system" in error.message) == ("UNSAFE_PICKLE", True)
    error = refusal(tmp_path, pickles.dumps(hidden(Call(pickles.LOAD, (pickles.zipped(evil, {}),)))))
    assert error.code == "BAD_CHECKPOINT"  # torch writes storages in the legacy format
    # Not even a tensor, a persistent object or another nested file.
    inner = pickles.legacy(pickles.loaded(np.zeros(1, np.float32)), {})
    for _ in range(3):
        inner = pickles.legacy(Call(pickles.LOAD, (inner,)), {})
    assert refusal(tmp_path, pickles.dumps(hidden(Call(pickles.LOAD, (inner,))))).code == "UNSAFE_PICKLE"
    # The parts before the object name nothing at all.
    facts: Any = {"little_endian": Name("torch", "FloatStorage")}
    assert refusal(tmp_path, pickles.legacy({}, {}, facts)).code == "UNSAFE_PICKLE"


@pytest.mark.parametrize("name", sorted(IN_CHECKPOINTS))
def test_accepted_names_with_odd_arguments(name: tuple[str, str], tmp_path: Path) -> None:
    """Whatever they are called with, what comes of it is data, or an error with a code."""
    odd: list[Any] = [
        (),
        (None,),
        ("os.system", "id"),
        (Name(*name),),
        (Name(*name), (), {}),
        ({"__class__": "x", "type": "class", "class_name": "EDMPrecond", "state": {"__reduce__": 1}},),
        ([[[1, 2], 3]],),
        (b"\x80\x04N.",),
        (2**200, -1, (2**62,) * 9, (1,)),
        (float("nan"), True, None, "", b"", [], {}, set(), frozenset()),
    ]
    codes = set()
    for args in odd:
        for state in (None, {"__setstate__": 1, "__dict__": {}}):
            for value in (Call(Name(*name), args, state), hidden(Call(Name(*name), args, state))):
                # A sound network beside something odd that means nothing may well be converted.
                codes.add(outcome(tmp_path, pickles.dumps(value)))
    assert codes <= {"converted", "UNSAFE_PICKLE", "BAD_CHECKPOINT", "UNSUPPORTED_NETWORK"}


@pytest.mark.parametrize(
    ("what", "data"),
    [
        ("calling a number", Call(7, (1,))),
        ("calling what a call gives", Call(Call(pickles.ORDERED), (1,))),
        ("calling a tensor", Call(pickles.tensor(np.zeros(3, np.float32)), ("shape",))),
        ("arguments that are no tuple", Call(pickles.ORDERED, [1, 2])),
        ("the state of a number", Raw(b"K\x01}b")),
        ("the state of a name", Raw(b"ccollections\nOrderedDict\n}b")),
        ("the state of a text", Raw(b"\x8c\x01a}b")),
        ("the state of a tuple", Raw(b")}b")),
        ("the state of None", Raw(b"N}b")),
        ("keywords", Raw(b"ccollections\nOrderedDict\n)}\x8c\x01ak\x01s\x92")),
        ("instances of protocol 0", Raw(b"(ios\nsystem\n")),
        ("objects of protocol 0", Raw(b"(ccollections\nOrderedDict\no")),
        ("extension 1", Raw(b"\x82\x01")),
        ("extension 2", Raw(b"\x83\x01\x00")),
        ("extension 4", Raw(b"\x84\x01\x00\x00\x00")),
        ("a buffer out of band", Raw(b"\x97")),
        ("a buffer made read-only", Raw(b"C\x01a\x98")),
        ("a persistent id", pickles.Persistent("os.system")),
        ("a persistent id of protocol 0", Raw(b"Pos.system\n")),
        ("a storage class that is called", Call(Name("torch", "FloatStorage"), (10**12,))),
        ("an unknown instruction", Raw(b"\xff")),
    ],
)
def test_instructions_that_no_checkpoint_needs(what: str, data: Any, tmp_path: Path) -> None:
    error = refusal(tmp_path, pickles.dumps(hidden(data)))
    assert error.code in ("UNSAFE_PICKLE", "BAD_CHECKPOINT"), what
    assert error.code == "UNSAFE_PICKLE" or "instruction" not in error.message


@pytest.mark.parametrize(
    "raw",
    [
        b"",  # an empty stack
        b"0",  # nothing to drop
        b"t",  # no mark
        b"K\x01s",  # too little to set
        b"(K\x01u",  # a key without a value
        b"N\x8c\x01aK\x01s",  # filling what is no dict
        b"]K\x01\x90",  # items for what is no set
        b"h\x05",  # a memo that is not there
        b"j\xff\xff\xff\xff",
        b"}((K\x01tK\x02s",  # a mark in the way
        b"})K\x01s",  # a tuple as key
        b"\x8f()\x90",  # a tuple as item of a set
        b"\x8c\x02\xff\xfe",  # not UTF-8
        b"\x80\x63",  # a protocol of the future
        b"K\x01K\x02\x93",  # a name that is no text
    ],
)
def test_broken_pickles(raw: bytes, tmp_path: Path) -> None:
    assert refusal(tmp_path, b"\x80\x04" + raw + b".").code == "BAD_CHECKPOINT"


def test_empty_and_foreign_files(tmp_path: Path) -> None:
    foreign = [
        b"",
        b"hello",
        b"\x80",
        b"PK\x03\x04",
        b"\x93NUMPY\x01\x00",
        b"\x80\x04N.more",
        b"\x80\x04N.",
        b"\x80\x04}.",
    ]
    for data in foreign:
        assert refusal(tmp_path, data).code == "BAD_CHECKPOINT"
    assert refusal(tmp_path, pickles.zipped({}, {})[:-30]).code == "BAD_CHECKPOINT"
    assert refusal(tmp_path, pickles.legacy({}, {}, {"little_endian": False})).code == "BAD_CHECKPOINT"


def test_snapshots_cut_short(tmp_path: Path) -> None:
    """At any byte: a few hundred of them."""
    data = SNAPSHOT.read_bytes()
    for size in sorted({*range(64), *random.Random(1).sample(range(len(data)), 20), len(data) - 1}):
        assert refusal(tmp_path, data[:size]).code in ("BAD_CHECKPOINT", "UNSAFE_PICKLE")


def test_snapshots_with_flipped_bytes(tmp_path: Path) -> None:
    """A byte changed anywhere: an error with a code, or a network with other values; never anything else."""
    data, rng, codes = bytearray(SNAPSHOT.read_bytes()), random.Random(2), set()
    for _ in range(40):
        at = rng.randrange(len(data))
        old, data[at] = data[at], rng.randrange(256)
        codes.add(outcome(tmp_path, bytes(data)))
        data[at] = old
    assert codes <= {"converted", "UNSAFE_PICKLE", "BAD_CHECKPOINT", "UNSUPPORTED_NETWORK", "BAD_MODEL"}


def net_of(tensor: Any) -> dict[str, Any]:
    return {"ema": pickles.network({"model.w": tensor}, CONFIG)}


def claimed(count: int) -> Call:
    """A storage that claims more values than it has."""
    pid = pickles.Persistent(("storage", Name("torch", "FloatStorage"), "0", "cpu", count))
    parts = [pickles.dumps(part, 2) for part in (pickles.MAGIC, 1001, {"little_endian": True}, pid, ["0"])]
    return Call(pickles.LOAD, (b"".join(parts) + struct.pack("<q", count) + bytes(64),))


SMALL = pickles.loaded(np.zeros(16, np.float32))


@pytest.mark.parametrize(
    "value",
    [
        net_of(pickles.tensor(np.zeros(4, np.float32), claimed(2**40))),
        net_of(pickles.tensor(np.zeros(4, np.float32), claimed(-1))),
        net_of(Call(pickles.TENSOR, (SMALL, 0, (2**40,), (1,), False, None))),
        net_of(Call(pickles.TENSOR, (SMALL, 0, (2**40,), (0,), False, None))),  # one value repeated
        net_of(Call(pickles.TENSOR, (SMALL, 13, (4,), (1,), False, None))),
        net_of(Call(pickles.TENSOR, (SMALL, -4, (4,), (1,), False, None))),
        net_of(Call(pickles.TENSOR, (SMALL, 0, (4,), (-1,), False, None))),
        net_of(Call(pickles.TENSOR, (SMALL, 0, (4, 4), (1,), False, None))),
        net_of(Call(pickles.TENSOR, (SMALL, 0, (True,), (1,), False, None))),
        net_of(Call(pickles.TENSOR, (SMALL, 0, (1,) * 40, (1,) * 40, False, None))),
    ],
)
def test_tensors_that_lie_about_their_storage(value: Any, tmp_path: Path) -> None:
    assert refusal(tmp_path, pickles.dumps(value)).code == "BAD_CHECKPOINT"


BOMBS: dict[str, Any] = {
    "a text of 4 GiB": Raw(b"X\xff\xff\xff\xff"),
    "bytes of 2⁶³": Raw(b"\x8e" + struct.pack("<Q", 2**63)),
    "bytes of 2⁶⁴ − 1": Raw(b"\x96" + struct.pack("<Q", 2**64 - 1)),
    "a number of 2 GiB": Raw(b"\x8b\xff\xff\xff\x7f"),
    "a memo of 4 G places": Raw(b"Nr\xff\xff\xff\xffN0" * 3 + b"\x8b"),
    "a million dicts": Raw(b"}" * 1_100_000),
    "sets copied over and over": Raw(
        b"cbuiltins\nset\nq\x01("
        + b"".join(b"M" + struct.pack("<H", i) for i in range(30_000))
        + b"lq\x02"
        + b"h\x01h\x02\x85R" * 2_000
    ),
    "dicts copied over and over": Raw(
        b"ccollections\nOrderedDict\nq\x01]q\x02(" + b"K\x01K\x02\x86" * 30_000 + b"e" + b"h\x01h\x02\x85R" * 2_000
    ),
    "lists a hundred thousand deep": Raw(b"]" * 100_000 + b"a" * 99_999),
    "tuples a hundred thousand deep": Raw(b")" + b"\x85" * 100_000),
    "tuples a hundred thousand deep as a key": Raw(b"})" + b"\x85" * 100_000 + b"Ns"),
    "a list in itself": Raw(b"]q\x01h\x01a" * 1000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs(name: str, tmp_path: Path) -> None:
    """They end in an error within bounds of memory and time."""
    data = pickles.dumps({"first": BOMBS[name], "ema": 1})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB
    began = time.process_time()
    assert refusal(tmp_path, data).code in ("UNSAFE_PICKLE", "BAD_CHECKPOINT")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400 << 10
    assert time.process_time() - began < 30


def test_networks_that_contain_themselves(tmp_path: Path) -> None:
    """Modules in a circle, and modules shared so that a walk over them would double at every level."""
    start = b"\x80\x02ctorch.nn.modules.container\nModuleDict\nq\x00)\x81q\x01}"
    circle = start + b"X\x08\x00\x00\x00_modules}X\x01\x00\x00\x00a" + b"h\x01ssb."
    error = refusal(tmp_path, circle)
    assert error.code == "UNSUPPORTED_NETWORK"
    shared: Any = pickles.module({})
    for _ in range(30):
        level = pickles.persistent("M", _modules={"a": shared, "b": shared})
        shared = level
    inner = pickles.persistent("SongUNet", _modules={"a": shared})
    top = pickles.persistent("EDMPrecond", _modules={"model": inner}, _init_kwargs=CONFIG)
    assert "nest deeper" in refusal(tmp_path, pickles.dumps({"ema": top})).message


def test_weights_that_share_a_storage_to_grow(tmp_path: Path) -> None:
    """A thousand tensors that are all the same storage would be written a thousand times."""
    data = np.zeros(1 << 16, np.float32)
    view = pickles.tensor(data)
    net = pickles.network({f"model.w{i}": view for i in range(1000)}, CONFIG)
    error = refusal(tmp_path, pickles.dumps({"ema": net}))
    assert (error.code, "larger than the file" in error.message) == ("UNSAFE_PICKLE", True)


@pytest.mark.parametrize("name", ["../../etc/x", "a.b", "", "a\nb", "a" * 500, "\ud800", "é"])
def test_names_of_tensors_are_names(name: str, tmp_path: Path) -> None:
    parts: dict[str, Any] = {"_buffers": {}, "_parameters": {}, "_modules": {}}
    inner = pickles.persistent("SongUNet", **{**parts, "_parameters": {name: SMALL}})
    top = pickles.persistent("EDMPrecond", **{**parts, "_modules": {"model": inner}}, _init_kwargs=CONFIG)
    assert refusal(tmp_path, pickles.dumps({"ema": top})).code == "BAD_CHECKPOINT"


def test_zip_entries_that_lie(tmp_path: Path) -> None:
    flat = np.zeros(64, np.float32)
    net = pickles.network({"model.w": pickles.tensor(flat, pickles.storage(flat, "0"))}, CONFIG)
    data = pickles.zipped({"ema": net}, {"0": flat})
    at = data.rindex(b"PK\x01\x02")  # the last entry of the directory: its sizes, and the place of its bytes
    for field in (20, 24, 42):
        for value in (0, 1, 2**31, 2**32 - 2):  # 0 is the place of the first entry
            broken = bytearray(data)
            struct.pack_into("<I", broken, at + field, value)
            assert refusal(tmp_path, bytes(broken)).code in ("BAD_CHECKPOINT", "UNSAFE_PICKLE")
    assert refusal(tmp_path, pickles.zipped({"ema": net}, {})).code == "BAD_CHECKPOINT"  # lacks its storage
    compressed = pickles.zipped({"ema": net}, {"0": flat}, zipfile.ZIP_DEFLATED)
    assert "compressed" in refusal(tmp_path, compressed).message
