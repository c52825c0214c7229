"""The memory tools: what an agent may write down, look up, and follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pegboard.exactjson import as_list
from pegboard.names import MAX_NAMESPACE
from pegboard.result import invalid
from pegboard.tool import MAX_VALUES, ResultTool, answers, takes
from pegboard.toolsets.memory import budget
from pegboard.toolsets.memory.check import (
    MAX_KEY,
    MAX_KEYWORDS,
    MAX_LINKS,
    MAX_OFFSET,
    MAX_QUERY,
    MAX_SUMMARY,
    MAX_TERM,
    MAX_TEXT,
    MAX_TYPE,
)
from pegboard.toolsets.memory.memories import Memories, MemoryHit, Page
from pegboard.toolsets.memory.memory import Brief, Link, Memory, round_score
from pegboard.toolsets.memory.query import split
from pegboard.toolsets.validation import validate_number

Schema = Mapping[str, Any]


def _text(description: str, *examples: str, **more: Any) -> Schema:
    return {"type": "string", "description": description, "examples": list(examples), **more}


def _number(description: str, least: int, most: int | None, default: int, example: int) -> Schema:
    bounds = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return {"type": "integer", "description": description, **bounds, "default": default, "examples": [example]}


def _object(properties: Mapping[str, Schema]) -> Schema:
    # That there are more links is said only where some were left out.
    required = [name for name in properties if name != "moreLinks"]
    return {"type": "object", "properties": properties, "required": required}


def _array(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "array", "items": _object(properties)}


_KEY = _text(
    "The memory's key; by convention namespace:domain:type:title",
    "shop:billing:decision:use-stripe",
    minLength=1,
    maxLength=MAX_KEY,
)
_SUMMARY = _text("One line that says what it is about", "Payments run through Stripe", maxLength=MAX_SUMMARY)
_TEXT = _text(
    "All there is to know; what is longer makes several memories, linked",
    "We chose Stripe because its invoices fit ours. Decided in May.",
    maxLength=MAX_TEXT,
)
_NAMESPACE = _text(
    "The project that the memory belongs to; left out, the configured one",
    "shop",
    minLength=1,
    maxLength=MAX_NAMESPACE,
)
_LINKS = {
    "type": "array",
    "maxItems": MAX_LINKS,
    "description": f"Memories that this one leads to, {MAX_LINKS} at most; they need not be written yet",
    "items": {
        "type": "object",
        "properties": {
            "key": {
                **_KEY,
                "description": "Key of the other memory",
                "examples": ["shop:billing:bug:double-charge"],
            },
            "type": _text(
                "What it is to this one: decision, constrained, bug, design, assumption, experiment, …",
                "bug",
                maxLength=MAX_TYPE,
            ),
            "term": _text("The word or phrase that links them", "refund", maxLength=MAX_TERM),
            "weight": {
                "type": "number",
                "description": "How strong the link is",
                "minimum": 0,
                "maximum": 1,
                "default": 0.5,
                "examples": [0.8],
            },
        },
        "required": ["key"],
        "additionalProperties": False,
    },
    "examples": [[{"key": "shop:billing:bug:double-charge", "type": "bug", "term": "refund", "weight": 0.8}]],
}
_SORT_LINKS = {
    "type": ["boolean", "string"],
    "enum": [True, False, "true", "false"],
    "description": "Sort links by weight times the score of their target; false leaves them as they were written",
    "default": True,
    "examples": [False],
}
_LIMIT = _number("How many results at most", 1, 100, 10, 5)
_OFFSET = _number("How many results to pass over", 0, None, 0, 10)

_STRING, _INTEGER, _NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}
_LINK_OUT = {"type": _STRING, "key": _STRING, "term": _STRING, "weight": _NUMBER}
_LINKS_OUT = _array(_LINK_OUT)
_SCORE_OUT = {"type": "number", "minimum": 0, "maximum": 100}
_STATUS_OUT = {"enum": ["active", "cold", "deprecated"]}
_META_OUT = {
    "created_at": _STRING,
    "updated_at": _STRING,
    "last_accessed_at": _STRING,
    "access_count": _INTEGER,
    "traverse_count": _INTEGER,
    "in_degree": _INTEGER,
    "out_degree": _INTEGER,
    "score": _SCORE_OUT,
    "status": _STATUS_OUT,
}
_MEMORY_OUT = {
    "key": _STRING,
    "namespace": _STRING,
    "summary": _STRING,
    "text": _STRING,
    "links": _LINKS_OUT,
    "moreLinks": _INTEGER,
    "version": _INTEGER,
    "meta": _object(_META_OUT),
}
_STEP_OUT = {**_MEMORY_OUT, "depth": _INTEGER}
_ROW_OUT = {
    "key": _STRING,
    "summary": _STRING,
    "version": _INTEGER,
    "score": _SCORE_OUT,
    "status": _STATUS_OUT,
    "updated_at": _STRING,
}
_RESULT_OUT = {
    "key": _STRING,
    "summary": _STRING,
    "excerpt": _STRING,
    "relevance": {"type": "number", "minimum": 0, "maximum": 1},
    "score": _SCORE_OUT,
    "links": _LINKS_OUT,
    "moreLinks": _INTEGER,
}
_PAGINATION = {"total": _INTEGER, "limit": _INTEGER, "offset": _INTEGER, "hasMore": {"type": "boolean"}}
_PAGE_OUT = {"pagination": _object(_PAGINATION), "message": _STRING}


def _hints(title: str, *, reads: bool = False, destroys: bool = False, again: bool = False) -> dict[str, Any]:
    return {
        "title": title,
        "readOnlyHint": reads,
        "destructiveHint": destroys,
        "idempotentHint": reads or again,
        "openWorldHint": False,
    }


class MemoryTool(ResultTool):
    """What all of them have in common."""

    category = "memory"
    max_values = MAX_VALUES

    def __init__(self, memories: Memories, answer_size: Callable[[], int] = lambda: budget.DEFAULT) -> None:
        self._memories = memories
        self._answer_size = answer_size

    @property
    def _budget(self) -> int:
        """How many characters an answer may have, as the settings say now."""
        return self._answer_size()


class MemoryAdd(MemoryTool):
    """Write one down."""

    name = "memory_add"
    description = (
        "Write down a memory: a decision, fact, bug or idea to be found again later. A key that exists is an error "
        "unless replace is true, which keeps its history and the links to it."
    )
    keywords = ("remember", "store", "save", "note", "knowledge")
    input_schema = takes(
        ["key"],
        key=_KEY,
        summary=_SUMMARY,
        text=_TEXT,
        links=_LINKS,
        namespace=_NAMESPACE,
        replace={
            "type": "boolean",
            "description": "Put it in place of the memory that has this key",
            "default": False,
            "examples": [True],
        },
    )
    output_schema = answers(created={"type": "boolean"}, **_MEMORY_OUT)
    annotations = _hints("Add a memory", destroys=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        memory, created = await self._memories.add(
            arguments["key"],
            arguments.get("summary", ""),
            arguments.get("text", ""),
            _links(arguments.get("links", ())),
            namespace=arguments.get("namespace"),
            replace=arguments.get("replace", False),
        )
        return {**_brief(memory, self._budget), "created": created}


class MemoryGet(MemoryTool):
    """Look one up."""

    name = "memory_get"
    description = "Read one memory in full by its key, with its links and what is known of its use."
    keywords = ("recall", "read", "lookup")
    input_schema = takes(
        ["key"],
        key=_KEY,
        namespace=_NAMESPACE,
        sortLinks=_SORT_LINKS,
        offset=_number("From which character on the text is wanted, where an answer was cut", 0, None, 0, 24000),
        linksOffset=_number("How many links to pass over, where an answer says moreLinks", 0, None, 0, 100),
    )
    output_schema = answers(**_MEMORY_OUT)
    annotations = _hints("Read a memory", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        memory = await self._memories.get(
            arguments["key"], namespace=arguments.get("namespace"), sort_links=_sorting(arguments)
        )
        first_link = validate_number(arguments.get("linksOffset", 0), "linksOffset", 0, MAX_OFFSET)
        rows = budget.trim_rows([memory.to_dict()], self._budget, budget.MOST_LINKS, first_link)
        offset = validate_number(arguments.get("offset", 0), "offset", 0, MAX_OFFSET)
        return budget.fit_texts(rows, [memory.text], self._budget, offset)[0]


class MemoryUpdate(MemoryTool):
    """Change one."""

    name = "memory_update"
    description = (
        "Change a memory's summary, text or links; what is left out stays. With version, it is refused if somebody "
        "else changed the memory since."
    )
    keywords = ("edit", "modify", "rewrite")
    input_schema = takes(
        ["key"],
        key=_KEY,
        summary=_SUMMARY,
        text=_TEXT,
        links={**_LINKS, "description": f"Links in place of those there are, {MAX_LINKS} at most"},
        version={
            "type": "integer",
            "minimum": 1,
            "description": "The version that you read",
            "examples": [3],
        },
        namespace=_NAMESPACE,
    )
    output_schema = answers(**_MEMORY_OUT)
    annotations = _hints("Change a memory", destroys=True, again=False)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        links = arguments.get("links")
        memory = await self._memories.update(
            arguments["key"],
            summary=arguments.get("summary"),
            text=arguments.get("text"),
            links=None if links is None else _links(links),
            version=arguments.get("version"),
            namespace=arguments.get("namespace"),
        )
        return _brief(memory, self._budget)


class MemoryRename(MemoryTool):
    """Another key for one."""

    name = "memory_rename"
    description = "Give a memory another key. Its links, those that lead to it, its score and its history stay."
    keywords = ("move",)
    input_schema = takes(
        ["old_key", "new_key"],
        old_key=_KEY,
        new_key={**_KEY, "description": "The key that it shall have", "examples": ["shop:billing:decision:payments"]},
        namespace=_NAMESPACE,
    )
    output_schema = answers(**_MEMORY_OUT)
    annotations = _hints("Rename a memory", again=False)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        memory = await self._memories.rename(
            arguments["old_key"], arguments["new_key"], namespace=arguments.get("namespace")
        )
        return _brief(memory, self._budget)


class MemoryDelete(MemoryTool):
    """Forget one."""

    name = "memory_delete"
    description = "Delete one memory by its key. Links of others that lead to it stay, in case it comes back."
    keywords = ("forget", "remove")
    input_schema = takes(["key"], key=_KEY, namespace=_NAMESPACE)
    output_schema = answers(key=_STRING, namespace=_STRING, deleted={"type": "boolean"})
    annotations = _hints("Delete a memory", destroys=True, again=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        memory = await self._memories.delete(arguments["key"], namespace=arguments.get("namespace"))
        return {"key": memory.key, "namespace": memory.namespace, "deleted": True}


class MemoryList(MemoryTool):
    """What there is."""

    name = "memory_list"
    description = "List memories by key, or the latest changes first, with their summaries."
    keywords = ("browse", "overview")
    input_schema = takes(
        [],
        namespace=_NAMESPACE,
        prefix=_text("Only keys that begin so", "shop:billing:", maxLength=MAX_KEY),
        order={
            "enum": ["key", "recent"],
            "description": "By key, or the latest change first",
            "default": "key",
            "examples": ["recent"],
        },
        limit={**_LIMIT, "default": 50},
        offset=_OFFSET,
    )
    output_schema = answers(memories=_array(_ROW_OUT), **_PAGE_OUT)
    annotations = _hints("List memories", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        page = await self._memories.list(
            arguments.get("prefix", ""),
            arguments.get("order", "key"),
            arguments.get("limit", 50),
            arguments.get("offset", 0),
            namespace=arguments.get("namespace"),
        )
        size = self._budget
        return _format_page("memories", [_row(memory, size) for memory in page.items], page, size)


class _SearchTool(MemoryTool):
    output_schema = answers(results=_array(_RESULT_OUT), **_PAGE_OUT)

    def _answer(self, page: Page[MemoryHit]) -> dict[str, Any]:
        size = self._budget
        rows = [budget.trim_rows([_result(hit)], size // 2, budget.MOST_LINKS_OF_MANY)[0] for hit in page.items]
        return _format_page("results", rows, page, size)


class MemorySearch(_SearchTool):
    """By a question."""

    name = "memory_search"
    description = (
        "Search your memories with a question in plain words. Finds other forms of a word, its beginning, and misspelt "
        "ones, in key, summary and text; the best first, with marked excerpts."
    )
    keywords = ("recall", "remember", "knowledge", "notes", "look up", "find")
    input_schema = takes(
        ["query"],
        query=_text("What you want to know", "how do we take payments?", minLength=1),
        limit=_LIMIT,
        offset=_OFFSET,
        sortLinks=_SORT_LINKS,
        namespace=_NAMESPACE,
    )
    annotations = _hints("Search memories", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        page = await self._memories.search(
            arguments["query"],
            arguments.get("limit", 10),
            arguments.get("offset", 0),
            sort_links=_sorting(arguments),
            namespace=arguments.get("namespace"),
        )
        return self._answer(page)


class MemoryFulltextSearch(_SearchTool):
    """By keywords."""

    name = "memory_fulltext_search"
    description = (
        "Search your memories for keywords: any of them (OR) or all (AND). A keyword of several words is a phrase. "
        "The best first, with the keywords marked in excerpts."
    )
    keywords = ("recall", "exact", "phrase", "grep")
    input_schema = takes(
        ["keywords"],
        keywords={
            "type": ["string", "array"],
            "items": {"type": "string", "maxLength": MAX_QUERY},
            "minLength": 1,
            "maxLength": MAX_QUERY,
            "minItems": 1,
            "maxItems": MAX_KEYWORDS,
            "description": f"Keywords as a list, or as text parted by commas; {MAX_KEYWORDS} at most",
            "examples": ["stripe, double charge", ["stripe", "double charge"]],
        },
        operator={
            "enum": ["AND", "OR"],
            "description": "Whether all keywords must be there, or any",
            "default": "OR",
            "examples": ["AND"],
        },
        limit=_LIMIT,
        offset=_OFFSET,
        sortLinks=_SORT_LINKS,
        namespace=_NAMESPACE,
    )
    annotations = _hints("Search memories by keyword", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        given = arguments["keywords"]
        words = split(given) if isinstance(given, str) else [str(word) for word in as_list(given) or []]
        if not any(word.strip() for word in words):
            raise invalid("keywords: there is none among blanks and commas")
        page = await self._memories.fulltext(
            words,
            arguments.get("operator", "OR"),
            arguments.get("limit", 10),
            arguments.get("offset", 0),
            sort_links=_sorting(arguments),
            namespace=arguments.get("namespace"),
        )
        return self._answer(page)


class MemoryReadLinked(MemoryTool):
    """A walk along links."""

    name = "memory_read_linked"
    description = "Read a memory and those that its links lead to, link by link, the nearest first."
    keywords = ("graph", "related", "context", "neighbours")
    input_schema = takes(
        ["key"],
        key=_KEY,
        depth=_number("How many links away at most", 1, 6, 3, 2),
        breadth=_number("How many links of each memory are followed", 1, 20, 5, 3),
        total=_number("How many memories at most", 1, 50, 20, 10),
        sortLinks=_SORT_LINKS,
        namespace=_NAMESPACE,
    )
    output_schema = answers(memories=_array(_STEP_OUT), total=_INTEGER, message=_STRING)
    annotations = _hints("Read linked memories", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        steps = await self._memories.read_linked(
            arguments["key"],
            arguments.get("depth", 3),
            arguments.get("breadth", 5),
            arguments.get("total", 20),
            sort_links=_sorting(arguments),
            namespace=arguments.get("namespace"),
        )
        found = [{**step.memory.to_dict(), "depth": step.depth} for step in steps]
        rows = budget.trim_rows(found, self._budget, budget.MOST_LINKS_OF_MANY)
        fit = budget.fit_texts(rows, [step.memory.text for step in steps], self._budget)
        answer: dict[str, Any] = {"memories": fit, "total": len(rows)}
        if len(fit) < len(rows):
            answer["message"] = f"{len(fit)} of {len(rows)} fit into an answer: read on from one of the last of them."
        return answer


MEMORY_TOOLS = (
    MemoryAdd,
    MemoryGet,
    MemoryUpdate,
    MemoryRename,
    MemoryDelete,
    MemoryList,
    MemorySearch,
    MemoryFulltextSearch,
    MemoryReadLinked,
)


def memory_tools(memories: Memories, answer_size: Callable[[], int] = lambda: budget.DEFAULT) -> list[MemoryTool]:
    """All of them."""
    return [tool(memories, answer_size) for tool in MEMORY_TOOLS]


def _links(given: Sequence[Mapping[str, Any]]) -> list[Link]:
    return [
        Link(link["key"], link.get("type", "related"), link.get("term", ""), float(link.get("weight", 0.5)))
        for link in given
    ]


def _sorting(arguments: Mapping[str, Any]) -> bool:
    return arguments.get("sortLinks", True) in (True, "true")


def _brief(memory: Memory, size: int) -> dict[str, Any]:
    """A memory that somebody just wrote: they know its text."""
    row = memory.to_dict()
    del row["text"]
    return budget.trim_rows([row], size, budget.MOST_LINKS_OF_MANY)[0]


def _row(memory: Brief, size: int) -> dict[str, Any]:
    meta = memory.meta.to_dict()
    return {
        "key": memory.key,
        "summary": budget.truncate(memory.summary, size // 3),
        "version": memory.version,
        "score": meta["score"],
        "status": meta["status"],
        "updated_at": meta["updated_at"],
    }


def _result(hit: MemoryHit) -> dict[str, Any]:
    return {
        "key": hit.key,
        "summary": hit.summary,
        "excerpt": hit.excerpt,
        "relevance": round(hit.relevance, 4),
        "score": round_score(hit.score),
        "links": [link.to_dict() for link in hit.links],
    }


def _format_page(what: str, rows: Sequence[dict[str, Any]], page: Page[Any], size: int) -> dict[str, Any]:
    fit = budget.first_that_fit(rows, size)
    end = page.offset + len(fit)
    answer: dict[str, Any] = {
        what: fit,
        "pagination": {
            "total": page.total,
            "limit": page.limit,
            "offset": page.offset,
            "hasMore": end < page.total,
        },
    }
    if len(fit) < len(rows):
        answer["message"] = f"{len(fit)} of {len(rows)} fit into an answer: go on with offset {end}."
    return answer
