"""The tool that reads kept results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.clients.caller import Caller, current
from pegboard.results.reader import ResultQuery
from pegboard.results.results import Results
from pegboard.tool import ResultTool, answers, takes
from pegboard.toolsets.schemas import INTEGER, MAYBE_INTEGER, STRING, hints, number, text

_MOST = 2**53 - 1
_ANY: Mapping[str, Any] = {}
_LIST = {"type": "array"}


class ResultRead(ResultTool):
    """Read on in a large result."""

    name = "result_read"
    category = "results"
    description = (
        "Read on in a large result, of which you were given a part and an id (r_…). A list is read by records, all "
        'else by characters (path="" for any). Go on with offset = the next of the answer.'
    )
    keywords = ("rest", "more", "page", "truncated", "whole result")
    input_schema = takes(
        ["id"],
        id=text("The id of the result", "r_7Kd0a2Q9xYzW1bC3dE5fGh", maxLength=200),
        offset=number("Where to begin: a record, a character or a hit", 0, _MOST, 0),
        limit={
            "type": "integer",
            "minimum": 1,
            "maximum": _MOST,
            "description": "How many at most; as many as fit if nothing is said",
        },
        query=text("Only where these words stand; each hit with its place", "timeout", maxLength=1000),
        path=text(
            "What to read: names with dots ([] is each item), or a JSON Pointer", "data.items[].name", maxLength=2000
        ),
        fields={
            "type": "array",
            "items": {"type": "string", "maxLength": 500},
            "maxItems": 50,
            "description": "Only these fields of each record",
            "examples": [["id", "user.login"]],
        },
        where=text(
            "Only records with: FIELD OP VALUE, joined by and (OP is = != < <= > >= contains; no FIELD: the record)",
            "state = open and comments > 10",
            maxLength=2000,
        ),
    )
    output_schema = answers(
        id=STRING,
        unit={**STRING, "description": "What offset, next and total count: records, characters or hits"},
        records=_LIST,
        at={"type": "array", "items": INTEGER, "description": "The numbers of chosen records"},
        keys={"type": "array", "items": STRING, "description": "The names of records that are members of an object"},
        text=STRING,
        hits=_LIST,
        value=_ANY,
        offset=INTEGER,
        next={**MAYBE_INTEGER, "description": "The offset of the next page, if there is one"},
        total=INTEGER,
        message=STRING,
    )
    annotations = hints("Read a large result", reads=True)

    def __init__(self, results: Results) -> None:
        self._results = results

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        caller = current.get(None) or Caller()
        wanted = ResultQuery(
            arguments["id"],
            arguments["offset"],
            arguments.get("limit"),
            arguments.get("query"),
            arguments.get("path"),
            arguments.get("fields") or (),
            arguments.get("where"),
        )
        return await self._results.read(wanted, caller.client, caller.cap)


class ResultReadForHandles(ResultRead):
    """The same where tools of some server take kept results as arguments."""

    description = (
        f"{ResultRead.description} Where the part that you were given says so, all of it can be an argument of another "
        'tool: {"$result": "r_…", "path": "…"}.'
    )
