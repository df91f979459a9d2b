"""Pickles read as data: a machine that has their stack, but cannot import, call or set anything.

Python's own unpickler imports what a pickle names and calls it. This one looks names up in a table that the caller
gives, `Names`, whose entries are functions of this package; any other name ends the reading. What comes out are
numbers, texts, tuples, lists, dicts, sets and the few classes of `values`. Bytes are views of the file.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import BadCheckpointError, UnsafePickleError
from .values import Buildable

Names = Mapping[tuple[str, str], Callable[["Machine", tuple[Any, ...]], Any]]
"""What a pickle may name, as (module, name), and the function of this package that stands for it."""

Persistent = Callable[[Any], Any]
"""Gives the object of a persistent id."""

WORK = 1_000_000  # instructions and copied items per checkpoint: the largest of EDM's takes about an eighth


@dataclass
class Budget:
    """What is left of the work that one checkpoint may cost, nested pickles included."""

    left: int = WORK

    def spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise UnsafePickleError(f"the pickle takes more than {WORK:,} instructions; no checkpoint needs as many")


@dataclass(frozen=True, eq=False, slots=True)
class Named:
    """A name on the stack, and what stands for it."""

    module: str
    name: str
    make: Callable[[Machine, tuple[Any, ...]], Any]


_MARK = object()


class Machine:
    """Reads one pickle that begins at `start` of `data`; `end` is where it ended.

    >>> Machine(memoryview(pickle.dumps({"a": (1, [2.5, None])})), {}).run()
    {'a': (1, [2.5, None])}
    """

    def __init__(
        self,
        data: memoryview,
        names: Names,
        persistent: Persistent | None = None,
        budget: Budget | None = None,
        start: int = 0,
    ) -> None:
        self.data, self.end = data, start
        self.names, self.persistent = names, persistent
        self.budget = budget or Budget()
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self) -> Any:
        """The object that the pickle describes."""
        while True:
            self.budget.spend(1)
            code = self.take(1)[0]
            if code == pickle.STOP[0]:
                return self.pop()
            step = _STEPS.get(code)
            if step is None:
                raise UnsafePickleError(
                    f"the pickle has the instruction {code:#04x} at byte {self.end - 1}, which no checkpoint needs"
                )
            step(self)

    # Reading.

    def take(self, size: int) -> memoryview:
        """The next bytes, as a view."""
        end = self.end + size
        if size < 0 or end > len(self.data):
            raise BadCheckpointError(f"the pickle is cut short: {size:,} bytes are wanted at byte {self.end:,}")
        view, self.end = self.data[self.end : end], end
        return view

    def number(self, form: str) -> Any:
        """The next number, in the notation of `struct`."""
        return struct.unpack(form, self.take(struct.calcsize(form)))[0]

    def text(self, size: int) -> str:
        try:
            return str(self.take(size), "utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise BadCheckpointError(f"the pickle has a text at byte {self.end - size:,} that is not UTF-8") from error

    def line(self) -> str:
        """The text up to the next line feed."""
        for size in range(min(1024, len(self.data) - self.end)):
            if self.data[self.end + size] == 10:
                text = self.text(size)
                self.take(1)
                return text
        raise BadCheckpointError(f"the pickle has a name at byte {self.end:,} that does not end")

    # The stack.

    def pop(self) -> Any:
        if not self.stack or self.stack[-1] is _MARK:
            raise BadCheckpointError(f"the pickle takes from an empty stack at byte {self.end:,}")
        return self.stack.pop()

    def pop_to_mark(self) -> list[Any]:
        for at in range(len(self.stack) - 1, -1, -1):
            if self.stack[at] is _MARK:
                items = self.stack[at + 1 :]
                del self.stack[at:]
                return items
        raise BadCheckpointError(f"the pickle looks for a mark that is not there at byte {self.end:,}")

    def push(self, value: Any) -> None:
        self.stack.append(value)

    def top(self, kind: type) -> Any:
        value = self.pop()
        if type(value) is not kind:
            raise BadCheckpointError(f"the pickle fills a {kind.__name__} at byte {self.end:,} that is none")
        self.push(value)
        return value

    # Names and calls.

    def name(self, module: Any, name: Any) -> Named:
        """The name on the stack, if it is one of those that are accepted."""
        if not isinstance(module, str) or not isinstance(name, str):
            raise BadCheckpointError(f"the pickle names something at byte {self.end:,} by what is not text")
        make = self.names.get((module, name))
        if make is None:
            raise UnsafePickleError(
                f"the pickle asks for {clip(module)}.{clip(name)}, which is not among the names that are read. "
                "Nothing was executed; do not load this file with torch or pickle unless you know who made it"
            )
        return Named(module, name, make)

    def call(self, function: Any, args: Any) -> Any:
        """What stands for function(*args)."""
        if not isinstance(function, Named) or not isinstance(args, tuple):
            raise UnsafePickleError(f"the pickle calls something at byte {self.end:,} that is not a name")
        return function.make(self, args)

    def build(self, target: Any, state: Any) -> None:
        """Hand an object the state that its class would have restored."""
        if isinstance(target, Buildable):
            target.build(state)
        elif not isinstance(target, dict):  # attributes of a dict's subclass are of no use here
            raise UnsafePickleError(f"the pickle sets the state of something at byte {self.end:,} that has none")


def clip(text: object) -> str:
    """A text for a message: printable, on one line, and short."""
    shown = "".join(c if c.isprintable() else "�" for c in str(text)[:80])
    return shown + "…" if len(str(text)) > 80 else shown


def _key(machine: Machine, value: Any) -> Any:
    """A value that may be hashed: tuples could nest until hashing them overflows the interpreter's stack."""
    if isinstance(value, memoryview):
        machine.budget.spend(len(value) // 256)
        return bytes(value)
    if isinstance(value, str | bytes | int | float | None):
        return value
    raise BadCheckpointError(f"the pickle has a key at byte {machine.end:,} that is neither text nor number")


def _pairs(machine: Machine, items: list[Any]) -> dict[Any, Any]:
    if len(items) % 2:
        raise BadCheckpointError(f"the pickle has a key without a value at byte {machine.end:,}")
    return {_key(machine, key): value for key, value in zip(items[::2], items[1::2], strict=True)}


def _put(machine: Machine, index: int) -> None:
    value = machine.pop()
    machine.push(value)
    machine.memo[index] = value


def _get(machine: Machine, index: int) -> None:
    if index not in machine.memo:
        raise BadCheckpointError(f"the pickle refers at byte {machine.end:,} to something that it does not hold")
    machine.push(machine.memo[index])


def _tuple(machine: Machine, count: int) -> None:
    items = [machine.pop() for _ in range(count)]
    machine.push(tuple(reversed(items)))


def _proto(machine: Machine) -> None:
    version = machine.number("<B")
    if version > pickle.HIGHEST_PROTOCOL:
        raise BadCheckpointError(f"the pickle has protocol {version}, which does not exist yet")


def _setitems(machine: Machine, items: list[Any]) -> None:
    machine.top(dict).update(_pairs(machine, items))


def _additems(machine: Machine) -> None:
    items = [_key(machine, item) for item in machine.pop_to_mark()]
    machine.top(set).update(items)


def _append(machine: Machine, items: list[Any]) -> None:
    machine.top(list).extend(items)


def _stack_global(machine: Machine) -> None:
    name, module = machine.pop(), machine.pop()
    machine.push(machine.name(module, name))


def _reduce(machine: Machine) -> None:
    args, function = machine.pop(), machine.pop()
    machine.push(machine.call(function, args))


def _newobj_ex(machine: Machine) -> None:
    keywords = machine.pop()
    if keywords != {}:
        raise UnsafePickleError(f"the pickle makes an object with keywords at byte {machine.end:,}")
    _reduce(machine)


def _build(machine: Machine) -> None:
    state, target = machine.pop(), machine.pop()
    machine.build(target, state)
    machine.push(target)


def _persid(machine: Machine) -> None:
    if machine.persistent is None:
        raise UnsafePickleError(f"the pickle has a persistent id at byte {machine.end:,}, which belongs to torch files")
    machine.push(machine.persistent(machine.pop()))


def _long(machine: Machine, size: int) -> None:
    machine.push(int.from_bytes(machine.take(size), "little", signed=True))


_Step = Callable[[Machine], Any]

# What each instruction does. Those of protocols 0 and 1 that neither torch nor EDM writes, extension codes (EXT1…)
# and out-of-band buffers are left out on purpose.
_BY_CODE: dict[bytes, _Step] = {
    pickle.PROTO: _proto,
    pickle.FRAME: lambda m: m.number("<Q"),
    pickle.MARK: lambda m: m.push(_MARK),
    pickle.POP: lambda m: m.stack.pop() if m.stack else m.pop(),
    pickle.POP_MARK: lambda m: m.pop_to_mark(),
    pickle.DUP: lambda m: (value := m.pop(), m.push(value), m.push(value)),
    # Atoms.
    pickle.NONE: lambda m: m.push(None),
    pickle.NEWTRUE: lambda m: m.push(True),
    pickle.NEWFALSE: lambda m: m.push(False),
    pickle.BININT: lambda m: m.push(m.number("<i")),
    pickle.BININT1: lambda m: m.push(m.number("<B")),
    pickle.BININT2: lambda m: m.push(m.number("<H")),
    pickle.LONG1: lambda m: _long(m, m.number("<B")),
    pickle.BINFLOAT: lambda m: m.push(m.number(">d")),
    pickle.SHORT_BINSTRING: lambda m: m.push(str(m.take(m.number("<B")), "latin1")),  # of Python 2
    pickle.BINSTRING: lambda m: m.push(str(m.take(m.number("<i")), "latin1")),
    pickle.BINUNICODE: lambda m: m.push(m.text(m.number("<I"))),
    pickle.SHORT_BINUNICODE: lambda m: m.push(m.text(m.number("<B"))),
    pickle.BINUNICODE8: lambda m: m.push(m.text(m.number("<Q"))),
    pickle.BINBYTES: lambda m: m.push(m.take(m.number("<I"))),
    pickle.SHORT_BINBYTES: lambda m: m.push(m.take(m.number("<B"))),
    pickle.BINBYTES8: lambda m: m.push(m.take(m.number("<Q"))),
    pickle.BYTEARRAY8: lambda m: m.push(m.take(m.number("<Q"))),
    # Containers.
    pickle.EMPTY_TUPLE: lambda m: m.push(()),
    pickle.TUPLE: lambda m: m.push(tuple(m.pop_to_mark())),
    pickle.TUPLE1: lambda m: _tuple(m, 1),
    pickle.TUPLE2: lambda m: _tuple(m, 2),
    pickle.TUPLE3: lambda m: _tuple(m, 3),
    pickle.EMPTY_LIST: lambda m: m.push([]),
    pickle.LIST: lambda m: m.push(m.pop_to_mark()),
    pickle.APPEND: lambda m: _append(m, [m.pop()]),
    pickle.APPENDS: lambda m: _append(m, m.pop_to_mark()),
    pickle.EMPTY_DICT: lambda m: m.push({}),
    pickle.DICT: lambda m: m.push(_pairs(m, m.pop_to_mark())),
    pickle.SETITEM: lambda m: _setitems(m, [m.pop(), m.pop()][::-1]),
    pickle.SETITEMS: lambda m: _setitems(m, m.pop_to_mark()),
    pickle.EMPTY_SET: lambda m: m.push(set()),
    pickle.ADDITEMS: _additems,
    pickle.FROZENSET: lambda m: m.push(frozenset(_key(m, item) for item in m.pop_to_mark())),
    # The memo.
    pickle.MEMOIZE: lambda m: _put(m, len(m.memo)),
    pickle.BINPUT: lambda m: _put(m, m.number("<B")),
    pickle.LONG_BINPUT: lambda m: _put(m, m.number("<I")),
    pickle.BINGET: lambda m: _get(m, m.number("<B")),
    pickle.LONG_BINGET: lambda m: _get(m, m.number("<I")),
    # Names and calls.
    pickle.GLOBAL: lambda m: m.push(m.name(m.line(), m.line())),
    pickle.INST: lambda m: m.push(m.call(m.name(m.line(), m.line()), tuple(m.pop_to_mark()))),
    pickle.STACK_GLOBAL: _stack_global,
    pickle.REDUCE: _reduce,
    pickle.NEWOBJ: _reduce,
    pickle.NEWOBJ_EX: _newobj_ex,
    pickle.BUILD: _build,
    pickle.BINPERSID: _persid,
}
_STEPS = {code[0]: step for code, step in _BY_CODE.items()}
