"""The words of chats: how a text is cut up for the index, and what a query asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pegboard.search.tokens import terms

Phrase: TypeAlias = tuple[str, ...]

# Stands between the words of a text and other forms of them: no phrase reaches over it.
_BREAK = "¦"
# Beyond this, somebody pasted a document.
MOST_TEXT = 100_000
_MOST_WORDS = 32
_QUOTED = re.compile(r'"([^"]*)"')


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for: of each group one phrase has to be there, or, with `any_of`, of one of the groups."""

    groups: Sequence[Sequence[Phrase]]
    any_of: bool = False

    @property
    def words(self) -> frozenset[str]:
        """Every word that may be marked."""
        return frozenset(word for group in self.groups for phrase in group for word in phrase)


def index_words(text: str) -> list[str]:
    """The words of a text in their order, then other forms of them."""
    found = terms(text, stop_words=True, most=MOST_TEXT)
    return [*found.sequence, _BREAK, *found.aside]


def parse_query(query: str) -> Wanted:
    """What a query asks for: its words, in any form they may have been written in, and "its phrases" as they are."""
    phrases = [tuple(terms(quoted, stop_words=True).sequence) for quoted in _QUOTED.findall(query)]
    plain = _QUOTED.sub(" ", query).split()
    groups = list(_forms(plain, stop_words=False))
    if not groups and not any(phrases):
        # Nothing but small words: then these are meant.
        groups = list(_forms(plain, stop_words=True))
    return Wanted([*((phrase,) for phrase in phrases if phrase), *groups][:_MOST_WORDS])


def _forms(words: Sequence[str], *, stop_words: bool) -> Iterable[tuple[Phrase, ...]]:
    for word in dict.fromkeys(words):
        found = terms(word, stop_words=stop_words)
        if found.sequence:
            # `GitHub` was perhaps written as `github`; of scripts without spaces there are only single characters more.
            yield tuple(dict.fromkeys([tuple(found.sequence), *((whole,) for whole in found.aside if len(whole) > 1)]))
