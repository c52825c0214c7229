"""The term-document matrix, kept by column: for each term the tools that have it, and its weight in each."""

from __future__ import annotations

from array import array

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]


class Postings:
    """One pair of growing arrays a term, so that a tool can come or go without the others being touched."""

    def __init__(self) -> None:
        self._slots: list[array[int]] = []
        self._weights: list[array[float]] = []

    def frequency(self, term: int) -> int:
        """How many tools have a term."""
        return len(self._slots[term])

    def add(self, term: int, slot: int, weight: float) -> None:
        """Enter a tool under a term; terms are numbered without gaps."""
        if term == len(self._slots):
            self._slots.append(array("i"))
            self._weights.append(array("f"))
        self._slots[term].append(slot)
        self._weights[term].append(weight)

    def remove(self, term: int, gone: NDArray[np.bool_]) -> int:
        """Strike the tools whose slots are marked as gone; how many are left is returned."""
        slots = np.asarray(self._slots[term])
        stays = ~gone[slots]
        self._slots[term] = array("i", slots[stays].tobytes())
        self._weights[term] = array("f", np.asarray(self._weights[term])[stays].tobytes())
        return len(self._slots[term])

    def score(self, scores: Scores, term: int, factor: float) -> None:
        """Add a term's weights, times a factor, to the scores of the tools that have it."""
        scores[np.asarray(self._slots[term])] += np.asarray(self._weights[term]) * np.float32(factor)
