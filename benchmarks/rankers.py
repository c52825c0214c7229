"""Ways to find a tool, all asked in the same manner: ours, and what others would use."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Protocol

Tool = dict[str, Any]


class Ranker(Protocol):
    """Something that finds tools."""

    def search(self, query: str, limit: int) -> list[str]:
        """Names, best first."""
        ...


class Ours:
    """Pegboard's index over words."""

    semantic = False

    def __init__(self, tools: Sequence[Tool]) -> None:
        from pegboard.search.index import ToolIndex

        if self.semantic:
            from pegboard.search.semantic import model

            if model() is None:
                raise ImportError("wordllama is not installed")
        self.index = ToolIndex(tools, semantic=self.semantic)

    def search(self, query: str, limit: int) -> list[str]:
        """Names, best first."""
        return [hit.name for hit in self.index.search(query, limit)]


class OursSemantic(Ours):
    """Pegboard's index over words and meanings."""

    semantic = True


class FastMCP:
    """FastMCP's BM25 search as its server runs it: the catalog is checked for changes at every query."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        from fastmcp.server.transforms.search.bm25 import BM25SearchTransform
        from fastmcp.tools.base import Tool as FastMCPTool

        schema: dict[str, Any] = {"type": "object", "properties": {}}
        self._tools = [
            FastMCPTool(
                name=tool["name"], description=tool["description"], parameters=tool.get("inputSchema") or schema
            )
            for tool in tools
        ]
        self._transform = BM25SearchTransform(max_results=10)
        self.search("warm up", 1)

    def search(self, query: str, limit: int) -> list[str]:
        """Names, best first."""
        found = asyncio.run(self._transform._search(self._tools, query))  # pyright: ignore[reportPrivateUsage]
        return [tool.name for tool in found][:limit]


class BM25S:
    """bm25s with its own tokenizer, English stop words and Snowball stems, as its manual has it."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        import bm25s
        import Stemmer

        self._names = [tool["name"] for tool in tools]
        stemmer: Any = Stemmer
        self._stemmer = stemmer.Stemmer("english")
        self._tokenize: Callable[..., Any] = bm25s.tokenize
        self._index: Any = bm25s.BM25()
        self._index.index(self._tokens([text(tool) for tool in tools]), show_progress=False)

    def search(self, query: str, limit: int) -> list[str]:
        """Names, best first."""
        found, scores = self._index.retrieve(self._tokens([query]), k=min(limit, len(self._names)), show_progress=False)
        return [self._names[number] for number, score in zip(found[0], scores[0], strict=True) if score > 0]

    def _tokens(self, texts: list[str]) -> Any:
        return self._tokenize(texts, stopwords="en", stemmer=self._stemmer, show_progress=False)


class FTS5:
    """SQLite's full text search: Porter stems, bm25 with the name counting most."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute(
            "CREATE VIRTUAL TABLE tools USING fts5(name, description, more, tokenize='porter unicode61')"
        )
        self._database.executemany(
            "INSERT INTO tools VALUES (?, ?, ?)",
            [(tool["name"], tool["description"] or "", parameters(tool)) for tool in tools],
        )

    def search(self, query: str, limit: int) -> list[str]:
        """Names, best first."""
        words = " OR ".join(f'"{word}"' for word in re.findall(r"[^\W_]+", query))
        rows = self._database.execute(
            "SELECT name FROM tools WHERE tools MATCH ? ORDER BY bm25(tools, 3, 1, 0.5) LIMIT ?", (words or '""', limit)
        )
        return [name for (name,) in rows]


class TFIDF:
    """Plain TF-IDF, scikit-learn's, with its defaults and cosine."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer

        self._names = [tool["name"] for tool in tools]
        self._vectorizer: Any = TfidfVectorizer()
        self._matrix: Any = self._vectorizer.fit_transform([text(tool) for tool in tools]).T.tocsr()

    def search(self, query: str, limit: int) -> list[str]:
        """Names, best first."""
        scores = (self._vectorizer.transform([query]) @ self._matrix).toarray()[0]
        best = (-scores).argsort(kind="stable")[:limit]
        return [self._names[number] for number in best if scores[number] > 0]


RANKERS: dict[str, Callable[[Sequence[Tool]], Ranker]] = {
    "pegboard": Ours,
    "pegboard semantic": OursSemantic,
    "FastMCP BM25": FastMCP,
    "bm25s": BM25S,
    "SQLite FTS5": FTS5,
    "plain TF-IDF": TFIDF,
}


def text(tool: Tool) -> str:
    """Everything a tool says, for rankers that take one text."""
    return f"{tool['name']} {tool['description'] or ''} {parameters(tool)}"


def parameters(tool: Tool) -> str:
    """Names and descriptions of a tool's parameters."""
    properties = (tool.get("inputSchema") or {}).get("properties") or {}
    return " ".join(f"{name} {(inner or {}).get('description') or ''}" for name, inner in properties.items())
