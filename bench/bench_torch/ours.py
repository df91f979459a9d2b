"""The other half of the comparison: a process of `anisoflight-bench model --drive`."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

Answer = dict[str, Any]


class Ours:
    """The process; `hello` is what it says of itself, and every order is answered before the next."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=dict(environment)
        )
        self.pid = self._process.pid
        self.hello = self._answer()

    def order(self, **order: Any) -> Answer:
        """Give an order and wait for its answer; RuntimeError if it fails."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def _answer(self) -> Answer:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"anisoflight has ended with status {self._process.wait()}; its message stands above")
        answer: Answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(f"anisoflight: {answer['error']}")
        return answer

    def __enter__(self) -> Ours:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)
