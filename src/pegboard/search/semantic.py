"""What tools mean: vectors of their words, from a static model whose weights come inside a wheel.

WordLlama's table of token vectors is all that is taken: a text is the sum of its words', so a query costs a look-up and
one multiplication. The package itself is not imported; it would configure the root logger, and bring an HTTP client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from pegboard.log import logger
from pegboard.search.document import FIELDS, Texts
from pegboard.search.tokens import MAX_TEXT, words

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Vector = NDArray[np.float32]

# How much each part of a tool adds to its vector, whatever its length.
_SHARES = {
    "name": 1.0,
    "keywords": 1.0,
    "description": 1.0,
    "parameter_names": 0.3,
    "parameter_texts": 0.3,
    "server": 0.3,
}
# A query may ask for several things: each of its parts is looked for, and the whole.
_PART_END = re.compile(r"(?<=[.!?;:。！？；])\s*(?=\D)|\n|,? and then |, (?:and|then) ")  # noqa: RUF001
_MOST_PARTS = 16
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s|\n\n")  # noqa: RUF001
# Vectors have whole numbers and this length. So a product is exact in whatever order it is summed (it stays below 2^24,
# the last whole number of a float32), and equal tools are equal wherever they stand in the matrix.
_LENGTH = 2048
# The cosine from which on two texts have something to do with each other.
_NEAR = 0.2
# A word the model has not met is cut into tokens of a letter or two, whose vectors say nothing about it.
_LETTERS_A_TOKEN = 2.5
# Rows multiplied at once: few enough to stay in the cache, and for the library not to wake its threads for it.
_BLOCK = 128


@dataclass(frozen=True)
class Model:
    """A vector for every token."""

    tokenizer: Tokenizer
    table: NDArray[np.float16]

    @property
    def size(self) -> int:
        """The length of a vector."""
        return self.table.shape[1]


@cache
def model() -> Model | None:
    """The model, read once; `None`, and one line in the log, where it is not installed."""
    spec = find_spec("wordllama")
    try:
        from safetensors import safe_open
        from tokenizers import Tokenizer

        if spec is None or spec.origin is None:
            raise ImportError("wordllama is not installed")
        home = Path(spec.origin).parent
        with cast("Any", safe_open)(home / "weights" / "l2_supercat_256.safetensors", framework="numpy") as weights:
            table = cast("NDArray[np.float16]", weights.get_tensor("embedding.weight"))
        tokenizer = Tokenizer.from_file(str(home / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    except Exception as error:  # a wheel without its weights is as good as none
        logger().warning("semantic_search_unavailable", reason=str(error), help="pip install 'pegboard[semantic]'")
        return None
    return Model(tokenizer, table)


class Meanings:
    """The vectors of an index's tools, a row for each slot."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._rows = np.zeros((64, model.size), dtype=np.float32)
        self._taken = np.zeros(64, dtype=np.bool_)
        self._tokens = lru_cache(maxsize=1 << 15)(self._look_up)

    def put(self, slot: int, texts: Texts) -> None:
        """Enter a tool."""
        if slot >= len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
            self._taken = np.concatenate([self._taken, np.zeros_like(self._taken)])
        total = np.zeros(self._model.size, dtype=np.float32)
        for field, text in zip(FIELDS, texts.fields, strict=True):
            if text and field in _SHARES:
                said = words(_first_sentence(text) if field == "description" else text)
                total += np.float32(_SHARES[field]) * _unit(self._sum(said))
        self._rows[slot] = _whole(total)
        self._taken[slot] = True

    def drop(self, slots: list[int]) -> None:
        """Strike tools."""
        self._taken[slots] = False

    def knows(self, query: str) -> bool:
        """Whether any word of a query means something to the model."""
        return any(
            not word.isascii() or len(word) >= _LETTERS_A_TOKEN * len(self._tokens(word))
            for word in _query_words(query[:MAX_TEXT])
        )

    def likeness(self, query: str, slots: int) -> Vector | None:
        """How near each slot's tool is to what a query asks for, from 0 for the farthest to 1 for the nearest.

        What is not near at all counts 0. `None` where no word of the query means anything.
        """
        query = query[:MAX_TEXT]
        parts = [part for part in map(_query_words, _PART_END.split(query)) if part][:_MOST_PARTS]
        if not parts:
            return None
        asked = np.array([_whole(self._sum(part)) for part in [_query_words(query), *parts]])
        products = np.concatenate(
            [rows @ asked.T for rows in np.split(self._rows[:slots], range(_BLOCK, slots, _BLOCK))]
        )
        near = products[:, 0] + products[:, 1:].max(axis=1)
        taken = self._taken[:slots]
        least, most = near.min(where=taken, initial=np.inf), near.max(where=taken, initial=-np.inf)
        if most <= least:
            return None
        counts = taken & (products.max(axis=1) >= _NEAR * _LENGTH**2)
        return np.where(counts, (near - least) / (most - least), np.float32(0))

    def _sum(self, said: Iterable[str]) -> Vector:
        tokens = [token for word in said for token in self._tokens(word)]
        return self._model.table[tokens].sum(axis=0, dtype=np.float32)

    def _look_up(self, word: str) -> list[int]:
        return self._model.tokenizer.encode(word, add_special_tokens=False).ids


def _query_words(text: str) -> list[str]:
    """The words of a query that mean something, each once: numbers and single letters are particulars."""
    return [word for word in dict.fromkeys(words(text)) if word.isalpha() and len(word) > 1]


def _first_sentence(text: str) -> str:
    return _SENTENCE_END.split(text.strip(), maxsplit=1)[0]


def _unit(vector: Vector) -> Vector:
    norm = np.float32(np.linalg.norm(vector))
    return vector / norm if norm else vector


def _whole(vector: Vector) -> Vector:
    return np.rint(_unit(vector) * _LENGTH)
