"""Words that stand near each other in a query, and whether they do so in a tool."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]

# Words up to this far apart make a pair, in whichever order.
REACH = 4
# In a tool's sequence of term numbers: the end of a field, over which no pair reaches.
END = -1
_MOST_WORDS = 256


class Phrases:
    """The pairs of near words in one query."""

    def __init__(self, sequence: Sequence[int], worth: dict[int, float]) -> None:
        words = list(dict.fromkeys(sequence))[:_MOST_WORDS]
        place = {word: index for index, word in enumerate(words)}
        self._words = np.array(words, dtype=np.intp)
        self._worth = np.array([worth[word] for word in words])
        self._near = np.zeros((len(words), len(words)), dtype=np.bool_)
        for start, word in enumerate(sequence):
            for other in sequence[start + 1 : start + 1 + REACH]:
                if word != other and word in place and other in place:
                    self._near[place[word], place[other]] = self._near[place[other], place[word]] = True

    def score(self, tools: Sequence[array[int]], vocabulary: int) -> NDArray[np.float64]:
        """For each tool's sequence, the worth of the query's pairs in it, each counted once."""
        scores = np.zeros(len(tools))
        if not self._near.any() or not tools:
            return scores
        sequence = np.concatenate(tools)
        # One place more than there are terms, for END to point at.
        places = np.full(vocabulary + 1, -1, dtype=np.intp)
        places[self._words] = np.arange(len(self._words))
        places_in_sequence = places[sequence]
        at = np.flatnonzero(places_in_sequence >= 0)
        place = places_in_sequence[at]
        field = np.cumsum(sequence == END)[at]
        tool = np.repeat(np.arange(len(tools)), [len(words) for words in tools])[at]
        found = [self._pairs(at, place, field, tool, apart) for apart in range(1, REACH + 1)]
        keys = np.unique(np.concatenate(found))
        owner, pair = np.divmod(keys, len(self._words) ** 2)
        first, second = np.divmod(pair, len(self._words))
        np.add.at(scores, owner, (self._worth[first] + self._worth[second]) / 2)
        return scores

    def _pairs(self, at: Places, place: Places, field: Places, tool: Places, apart: int) -> Places:
        """A key for each pair of query words that far from each other among the query words of a tool's field."""
        first, second = place[:-apart], place[apart:]
        good = (at[apart:] - at[:-apart] <= REACH) & (field[apart:] == field[:-apart]) & self._near[first, second]
        low, high = np.minimum(first, second)[good], np.maximum(first, second)[good]
        return (tool[apart:][good] * len(self._words) + low) * len(self._words) + high
