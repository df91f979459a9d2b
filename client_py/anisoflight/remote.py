"""Schedules for networks that the server does not hold: it asks, and a function here answers.

    def answer(question):                     # the terms of docs/wire.md, per sample and subspace
        x = images[question.image] + ...
        return {"residual": ..., "backprop": ...}

    client.remote_schedule("mine", answer, shape=(8, 8, 1), images=len(images))

`anisoflight.torch.remote` answers for any denoiser of PyTorch, by autograd.
"""

from __future__ import annotations

import queue
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from .errors import BadRequestError
from .latents import draws
from .wire.tensors import table_of, to_numpy, vector_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Array = np.ndarray[Any, Any]

_NOISE, _PROBE = 0x6576616C, 0x70726F62  # the streams of the server's generator
_TERMS = {
    "backprop": ["residual", "backprop"],
    "explicit": ["residual", "explicit"],
    "full": ["residual", "explicit", "implicit1", "implicit2", "implicit3"],
}


@dataclass(frozen=True)
class Question:
    """What the server asks of a network: B samples x = x_0 + Σ_j √g_j P_j ε in J subspaces."""

    image: Array
    """[B] which of the images, where those of a class follow each other."""
    label: Array
    """[B] their classes, −1 for none."""
    seed: Array
    """[B] of their noise."""
    t: Array
    """[B] times on the schedule, 0 where residuals are measured."""
    g: Array
    """[B, J] noise variances."""
    omega: Array
    """[B, J] weights of the loss."""
    terms: tuple[str, ...]
    """What is asked for, by name."""

    def part(self, rows: slice) -> Question:
        """Some of the samples."""
        columns = {name: value[rows] for name, value in vars(self).items() if name != "terms"}
        return Question(**columns, terms=self.terms)

    def noise(self, shape: Sequence[int]) -> Array:
        """ε [B, *shape], float32: the noise that the server itself would take for these samples."""
        return draws(self.seed, shape, _NOISE)

    def probe(self, shape: Sequence[int], number: int = 0) -> Array:
        """A probe of independent signs [B, *shape], float32."""
        return np.where(draws(self.seed, shape, _PROBE + number) < 0, np.float32(-1), np.float32(1))


def subspaces_of(options: Mapping[str, Any]) -> int:
    """How many subspaces the options of a schedule mean."""
    family = options.get("family") or options
    if (family.get("basis") or "none") == "none":
        return 1
    return len(family.get("cuts") or [0]) + 1


def answer_terms(kind: str, options: Mapping[str, Any]) -> list[str]:
    """The columns of answers."""
    if kind == "geodesic":
        return ["residual"]
    mode = options.get("estimator") or "auto"
    if mode == "auto":
        mode = "backprop" if subspaces_of(options) == 1 else "full"
    return _TERMS.get(mode, ["residual"])  # of an unknown one the server says what there is


class Answers:
    """The client's side of an exchange: batches to be written as questions come in."""

    def __init__(self, answer: Callable[[Question], Mapping[str, Any]], terms: Sequence[str], subspaces: int) -> None:
        self._answer, self._terms = answer, terms
        self._ready: queue.SimpleQueue[pa.RecordBatch | None] = queue.SimpleQueue()
        self.schema = table_of({name: vector_column(np.zeros((0, subspaces))) for name in terms}).schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The answers, as they are given; ends with `end`."""
        return iter(self._ready.get, None)

    def end(self) -> None:
        self._ready.put(None)

    def take(self, batch: pa.RecordBatch, terms: Sequence[str]) -> None:
        """Answer a question."""
        columns = {name: to_numpy(batch.column(name)) for name in batch.schema.names}
        columns["seed"] = columns.pop("noise")
        question = Question(**columns, terms=tuple(terms))
        given = self._answer(question)
        rows = {name: vector_column(_values(given, name, question)) for name in self._terms}
        self._ready.put(pa.record_batch(list(rows.values()), schema=self.schema))


def _values(given: Mapping[str, Any], name: str, question: Question) -> Array:
    """The values of a term [B, J], 0 where it is not asked for: by a measurement before training."""
    shape = question.g.shape
    if name not in question.terms:
        return np.zeros(shape)
    if name not in given:
        raise BadRequestError(
            f"an answer must hold {', '.join(question.terms)}, got {', '.join(given) or 'nothing'}", "BAD_TENSOR"
        )
    values = np.asarray(given[name], np.float64)
    if values.shape == shape[:1] and shape[1] == 1:
        values = values[:, None]
    if values.shape != shape:
        raise BadRequestError(f"{name} must have the shape {shape} of g, got {values.shape}", "BAD_TENSOR")
    return values
