"""Pickles read by a restricted form of the standard library's unpickler: it can neither import, nor call, nor set
anything.

A name in the pickle is looked up in a table of the caller, `Names`, whose entries are functions of this package; any
other name ends the reading, and so do instructions that no checkpoint needs. The result consists of numbers, texts,
tuples, lists, dicts, sets and the few classes of `values`.
"""

import io  # noqa: F401 (used in the example)
import pickle
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .errors import BadCheckpointError, ConvertError, UnsafePickleError
from .values import Buildable

Maker = Callable[["Budget", tuple[Any, ...]], Any]

Names = Mapping[tuple[str, str], Maker]
"""What a pickle may name, as (module, name), and the function of this package that stands for it."""

WORK = 1_000_000  # instructions and copied items per checkpoint: the largest of EDM's takes about an eighth


@dataclass
class Budget:
    """The work that one checkpoint may still cost, including nested pickles."""

    left: int = WORK

    def spend(self, work: int) -> None:
        self.left -= work
        if self.left < 0:
            raise UnsafePickleError(f"the pickle takes more than {WORK:,} instructions; no checkpoint needs as many")


@dataclass(frozen=True, eq=False, slots=True)
class Named:
    """A name on the stack, and its replacement. Nothing else on the stack can be called."""

    module: str
    name: str
    make: Maker
    budget: Budget

    def __call__(self, *args: Any) -> Any:
        made = self.make(self.budget, args)
        if made is None:
            message = f"the pickle calls {self.module}.{self.name} with arguments that are not a checkpoint's"
            raise BadCheckpointError(message)
        return made


_Standard: Any = pickle._Unpickler
_Step = Callable[[Any], None]


def _build(unpickler: Any) -> None:
    """Give an object the state that its class would have restored."""
    state = unpickler.stack.pop()
    target = unpickler.stack[-1]
    if isinstance(target, Buildable):
        target.build(state)
    elif not isinstance(target, dict):  # attributes of a dict's subclass are ignored
        raise UnsafePickleError("the pickle sets the state of something that has none")


# Neither torch nor EDM writes the other instructions: those of protocols 0 and 1, extension codes (EXT1…), bytearrays,
# out-of-band buffers, keywords, and texts and numbers of more than 4 GiB.
_STANDARD = (
    pickle.PROTO, pickle.FRAME, pickle.STOP, pickle.MARK, pickle.POP, pickle.POP_MARK, pickle.DUP,
    pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG1,
    pickle.BINFLOAT, pickle.SHORT_BINSTRING, pickle.BINSTRING, pickle.BINUNICODE, pickle.SHORT_BINUNICODE,
    pickle.BINBYTES, pickle.SHORT_BINBYTES, pickle.BINBYTES8,
    pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1, pickle.TUPLE2, pickle.TUPLE3,
    pickle.EMPTY_LIST, pickle.LIST, pickle.APPEND, pickle.APPENDS, pickle.EMPTY_DICT, pickle.DICT, pickle.SETITEM,
    pickle.SETITEMS, pickle.EMPTY_SET, pickle.ADDITEMS, pickle.FROZENSET,
    pickle.MEMOIZE, pickle.BINPUT, pickle.LONG_BINPUT, pickle.BINGET, pickle.LONG_BINGET,
    pickle.GLOBAL, pickle.STACK_GLOBAL, pickle.REDUCE, pickle.BINPERSID,
)  # fmt: skip
_STEPS: dict[bytes, _Step] = {code: _Standard.dispatch[code[0]] for code in _STANDARD} | {
    pickle.BUILD: _build,
    pickle.NEWOBJ: _Standard.load_reduce,
}
# The values on the stack that an instruction hashes.
_HASHED = {
    pickle.SETITEM: slice(-2, -1),
    pickle.SETITEMS: slice(0, None, 2),
    pickle.DICT: slice(0, None, 2),
    pickle.ADDITEMS: slice(None),
    pickle.FROZENSET: slice(None),
}


def _bounded(step: _Step, hashed: slice | None) -> _Step:
    """The instruction at a cost of one. Values that it hashes must be atoms, because deeply nested tuples would
    overflow the interpreter's stack.
    """

    def run(unpickler: Any) -> None:
        unpickler.budget.spend(1)
        keys = () if hashed is None else unpickler.stack[hashed]
        if not all(isinstance(key, str | bytes | int | float | None) for key in keys):
            raise BadCheckpointError("the pickle has a key that is neither text nor number")
        step(unpickler)

    return run


class _Instructions(dict[int, _Step]):
    def __missing__(self, code: int) -> _Step:
        raise UnsafePickleError(f"the pickle has the instruction {code:#04x}, which no checkpoint needs")


class Unpickler(_Standard):
    """Reads one pickle from where a file is.

    >>> Unpickler(io.BytesIO(pickle.dumps({"a": (1, [2.5, None])})), {}).load()
    {'a': (1, [2.5, None])}
    """

    dispatch = _Instructions({code[0]: _bounded(step, _HASHED.get(code)) for code, step in _STEPS.items()})

    def __init__(
        self, file: Any, names: Names, persistent: Callable[[Any], Any] | None = None, budget: Budget | None = None
    ) -> None:
        super().__init__(file, encoding="latin1")
        self._names, self._persistent = names, persistent
        self.budget = budget or Budget()

    def load(self) -> Any:
        """The object that the pickle describes."""
        try:
            return super().load()
        except ConvertError:
            raise
        except EOFError as error:
            raise BadCheckpointError("the pickle is cut short") from error
        except (
            ArithmeticError, AttributeError, LookupError, TypeError, ValueError, pickle.UnpicklingError, struct.error,
        ) as error:  # fmt: skip
            raise BadCheckpointError(f"the pickle is damaged: {clip(error)}") from error

    def find_class(self, module: str, name: str) -> Named:
        make = self._names.get((module, name))
        if make is None:
            raise UnsafePickleError(
                f"the pickle asks for {clip(module)}.{clip(name)}, which is not among the names that are read. "
                "Nothing was executed; do not load this file with torch or pickle unless you know who made it"
            )
        return Named(module, name, make, self.budget)

    def persistent_load(self, pid: Any) -> Any:
        if self._persistent is None:
            raise UnsafePickleError("the pickle has a persistent id, which belongs to torch files")
        return self._persistent(pid)


def clip(text: object) -> str:
    """A printable, short, one-line text for a message."""
    shown = "".join(c if c.isprintable() else "�" for c in str(text)[:80])
    return shown + "…" if len(str(text)) > 80 else shown
