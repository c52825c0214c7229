"""The memory tools: what an agent may write down, look up, and follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pegboard.clients.caller import current
from pegboard.exactjson import as_list
from pegboard.result import Forbidden, invalid
from pegboard.tool import MAX_VALUES, ResultTool, answers, takes
from pegboard.toolsets.memory import budget
from pegboard.toolsets.memory.limits import MAX_KEY, MAX_KEYWORDS, MAX_LINKS, MAX_QUERY, validate_namespace
from pegboard.toolsets.memory.memories import ORDERS, Memories, MemoryHit
from pegboard.toolsets.memory.memory import Brief, Link, Memory, round_score
from pegboard.toolsets.memory.query import OPERATORS, split
from pegboard.toolsets.memory.schemas import (
    KEY,
    LIMIT,
    LINKS,
    MEMORY_OUT,
    NAMESPACE,
    OFFSET,
    PAGE_OUT,
    RESULT_OUT,
    ROW_OUT,
    SORT_LINKS,
    STEP_OUT,
    SUMMARY,
    TEXT,
    rows_of,
)
from pegboard.toolsets.page import Page, validate_offset
from pegboard.toolsets.schemas import BOOLEAN, INTEGER, STRING, choice, hints, number, switch, text


class MemoryTool(ResultTool):
    """What all of them have in common."""

    category = "memory"
    max_values = MAX_VALUES

    def __init__(self, memories: Memories, answer_size: Callable[[], int] = lambda: budget.DEFAULT) -> None:
        self._memories = memories
        self._answer_size = answer_size

    async def accept(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The checked input, in a namespace that its caller has."""
        given = await super().accept(arguments)
        caller = current.get(None)
        access = None if caller is None else caller.client.filter.access
        if access is None or access.default_namespace is None:
            return given
        namespace = validate_namespace(given.get("namespace") or access.default_namespace)
        if not access.admits_namespace(namespace):
            raise Forbidden(f'namespace "{namespace}" is none of yours')
        return {**given, "namespace": namespace}

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
        key=KEY,
        summary=SUMMARY,
        text=TEXT,
        links=LINKS,
        namespace=NAMESPACE,
        replace=switch("Put it in place of the memory that has this key"),
    )
    output_schema = answers(created=BOOLEAN, **MEMORY_OUT)
    annotations = hints("Add a memory", destroys=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        memory, created = await self._memories.add(
            arguments["key"],
            arguments.get("summary", ""),
            arguments.get("text", ""),
            _links(arguments.get("links", ())),
            namespace=arguments.get("namespace"),
            replace=arguments["replace"],
        )
        return {**_brief(memory, self._budget), "created": created}


class MemoryGet(MemoryTool):
    """Look one up."""

    name = "memory_get"
    description = "Read one memory in full by its key, with its links and what is known of its use."
    keywords = ("recall", "read", "lookup")
    input_schema = takes(
        ["key"],
        key=KEY,
        namespace=NAMESPACE,
        sortLinks=SORT_LINKS,
        offset=number("From which character on the text is wanted, where an answer was cut", 0, None, 0, 24000),
        linksOffset=number("How many links to pass over, where an answer says moreLinks", 0, None, 0, 100),
    )
    output_schema = answers(**MEMORY_OUT)
    annotations = hints("Read a memory", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        memory = await self._memories.get(
            arguments["key"], namespace=arguments.get("namespace"), sort_links=_sorting(arguments)
        )
        first_link = validate_offset(arguments["linksOffset"], "linksOffset")
        rows = budget.trim_rows([memory.to_dict()], self._budget, budget.MOST_LINKS, first_link)
        offset = validate_offset(arguments["offset"])
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
        key=KEY,
        summary=SUMMARY,
        text=TEXT,
        links={**LINKS, "description": f"Links in place of those there are, {MAX_LINKS} at most"},
        version={
            "type": "integer",
            "minimum": 1,
            "description": "The version that you read",
            "examples": [3],
        },
        namespace=NAMESPACE,
    )
    output_schema = answers(**MEMORY_OUT)
    annotations = hints("Change a memory", destroys=True, again=False)

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
        old_key=KEY,
        new_key={**KEY, "description": "The key that it shall have", "examples": ["shop:billing:decision:payments"]},
        namespace=NAMESPACE,
    )
    output_schema = answers(**MEMORY_OUT)
    annotations = hints("Rename a memory", again=False)

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
    input_schema = takes(["key"], key=KEY, namespace=NAMESPACE)
    output_schema = answers(key=STRING, namespace=STRING, deleted=BOOLEAN)
    annotations = hints("Delete a memory", destroys=True, again=True)

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
        namespace=NAMESPACE,
        prefix=text("Only keys that begin so", "shop:billing:", maxLength=MAX_KEY),
        order=choice("By key, or the latest change first", ORDERS, "recent", "key"),
        limit={**LIMIT, "default": 50},
        offset=OFFSET,
    )
    output_schema = answers(memories=rows_of(ROW_OUT), **PAGE_OUT)
    annotations = hints("List memories", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        page = await self._memories.list(
            arguments.get("prefix", ""),
            arguments["order"],
            arguments["limit"],
            arguments["offset"],
            namespace=arguments.get("namespace"),
        )
        size = self._budget
        return _format_page("memories", [_row(memory, size) for memory in page.items], page, size)


class _SearchTool(MemoryTool):
    output_schema = answers(results=rows_of(RESULT_OUT), **PAGE_OUT)

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
        query=text("What you want to know", "how do we take payments?", minLength=1),
        limit=LIMIT,
        offset=OFFSET,
        sortLinks=SORT_LINKS,
        namespace=NAMESPACE,
    )
    annotations = hints("Search memories", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        page = await self._memories.search(
            arguments["query"],
            arguments["limit"],
            arguments["offset"],
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
        operator=choice("Whether all keywords must be there, or any", OPERATORS, "AND", "OR"),
        limit=LIMIT,
        offset=OFFSET,
        sortLinks=SORT_LINKS,
        namespace=NAMESPACE,
    )
    annotations = hints("Search memories by keyword", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        given = arguments["keywords"]
        words = split(given) if isinstance(given, str) else [str(word) for word in as_list(given) or []]
        if not any(word.strip() for word in words):
            raise invalid("keywords: there is none among blanks and commas")
        page = await self._memories.fulltext(
            words,
            arguments["operator"],
            arguments["limit"],
            arguments["offset"],
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
        key=KEY,
        depth=number("How many links away at most", 1, 6, 3, 2),
        breadth=number("How many links of each memory are followed", 1, 20, 5, 3),
        total=number("How many memories at most", 1, 50, 20, 10),
        sortLinks=SORT_LINKS,
        namespace=NAMESPACE,
    )
    output_schema = answers(memories=rows_of(STEP_OUT), total=INTEGER, message=STRING)
    annotations = hints("Read linked memories", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        steps = await self._memories.read_linked(
            arguments["key"],
            arguments["depth"],
            arguments["breadth"],
            arguments["total"],
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
    return arguments["sortLinks"] in (True, "true")


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
        "in_degree": meta["in_degree"],
        "out_degree": meta["out_degree"],
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
    fit = budget.first_rows(rows, size)
    answer: dict[str, Any] = {what: fit, "pagination": page.pagination(len(fit))}
    if len(fit) < len(rows):
        end = page.offset + len(fit)
        answer["message"] = f"{len(fit)} of {len(rows)} fit into an answer: go on with offset {end}."
    return answer
