"""The server's random numbers: the latent of every seed, without the server."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL = 0x9E3779B9, 0xBB67AE85
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)
_LATENT, _NORMAL = 0, 1  # the stream of latents, and the purpose of normal numbers


def latents(seeds: Iterable[int], shape: Sequence[int]) -> Array:
    """The unit normal ξ that sampling starts from, for each seed: float32 [n, *shape], `shape` being [H, W, C].

    Sample i of a request uses seed + i. The numbers are those of Philox4x32-10 with the seed as the key, made normal by
    Box and Muller's transform. They equal the server's, except that the last digit may differ by one.

    >>> latents([42], [1, 3, 1]).ravel().astype(float).round(6).tolist()
    [0.223136, -0.996192, -1.289744]
    """
    return draws(seeds, shape, _LATENT)


def draws(seeds: Iterable[int], shape: Sequence[int], stream: int) -> Array:
    """Unit normal numbers of another stream of the generator; otherwise as `latents`."""
    keys = np.array([int(seed) % 2**64 for seed in seeds], np.uint64)
    size = int(np.prod(shape))
    position = np.arange((size + 1) // 2, dtype=np.uint64)
    counter = [position & _LOW, position >> _HALF, np.uint64(stream), np.uint64(_NORMAL)]
    words = _philox([np.broadcast_to(part, (len(keys), len(position))) for part in counter], keys[:, None])
    radius = np.sqrt(-2 * np.log(_open(words[1] << _HALF | words[0])))
    angle = 2 * np.pi * _open(words[3] << _HALF | words[2])
    pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return pairs.reshape(len(keys), -1)[:, :size].reshape(len(keys), *shape).astype(np.float32)


def _open(bits: Array) -> Array:
    """53 of 64 random bits as a number in (0, 1]."""
    return ((bits >> np.uint64(11)).astype(np.float64) + 1) * 2.0**-53


def _philox(counter: list[Array], seed: Array) -> list[Array]:
    """Ten rounds on counters of four 32-bit words, each in a uint64."""
    low, high = seed & _LOW, seed >> _HALF
    for turn in range(10):
        keys = [(part + np.uint64(turn * step % 2**32)) & _LOW for part, step in zip((low, high), _WEYL, strict=True)]
        first, second = counter[0] * _MULTIPLIERS[0], counter[2] * _MULTIPLIERS[1]
        counter = [
            second >> _HALF ^ counter[1] ^ keys[0],
            second & _LOW,
            first >> _HALF ^ counter[3] ^ keys[1],
            first & _LOW,
        ]
    return counter
