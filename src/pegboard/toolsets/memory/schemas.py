"""The parameters and answers of the memory tools, described once."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.names import MAX_NAMESPACE
from pegboard.toolsets.memory.limits import MAX_KEY, MAX_LINKS, MAX_SUMMARY, MAX_TERM, MAX_TEXT, MAX_TYPE
from pegboard.toolsets.schemas import INTEGER, NUMBER, PAGINATION, STRING, Schema, fields, number, text


def rows_of(properties: Mapping[str, Schema]) -> Schema:
    """A list of such objects; that there are more links is said only where some were left out."""
    return {"type": "array", "items": fields(properties, "moreLinks")}


KEY = text(
    "The memory's key; by convention namespace:domain:type:title",
    "shop:billing:decision:use-stripe",
    minLength=1,
    maxLength=MAX_KEY,
)
SUMMARY = text("One line that says what it is about", "Payments run through Stripe", maxLength=MAX_SUMMARY)
TEXT = text(
    "All there is to know; what is longer makes several memories, linked",
    "We chose Stripe because its invoices fit ours. Decided in May.",
    maxLength=MAX_TEXT,
)
NAMESPACE = text(
    "The project that the memory belongs to; left out, the configured one",
    "shop",
    minLength=1,
    maxLength=MAX_NAMESPACE,
)
LINKS = {
    "type": "array",
    "maxItems": MAX_LINKS,
    "description": f"Memories that this one leads to, {MAX_LINKS} at most; they need not be written yet",
    "items": {
        "type": "object",
        "properties": {
            "key": {
                **KEY,
                "description": "Key of the other memory",
                "examples": ["shop:billing:bug:double-charge"],
            },
            "type": text(
                "What it is to this one: decision, constrained, bug, design, assumption, experiment, …",
                "bug",
                maxLength=MAX_TYPE,
            ),
            "term": text("The word or phrase that links them", "refund", maxLength=MAX_TERM),
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
SORT_LINKS = {
    "type": ["boolean", "string"],
    "enum": [True, False, "true", "false"],
    "description": "Sort links by weight times the score of their target; false leaves them as they were written",
    "default": True,
    "examples": [False],
}
LIMIT = number("How many results at most", 1, 100, 10, 5)
OFFSET = number("How many results to pass over", 0, None, 0, 10)

_LINK_OUT = {"type": STRING, "key": STRING, "term": STRING, "weight": NUMBER}
_LINKS_OUT = rows_of(_LINK_OUT)
_SCORE_OUT = {"type": "number", "minimum": 0, "maximum": 100}
_STATUS_OUT = {"enum": ["active", "cold", "deprecated"]}
_META_OUT = {
    "created_at": STRING,
    "updated_at": STRING,
    "last_accessed_at": STRING,
    "access_count": INTEGER,
    "traverse_count": INTEGER,
    "in_degree": INTEGER,
    "out_degree": INTEGER,
    "score": _SCORE_OUT,
    "status": _STATUS_OUT,
}
MEMORY_OUT = {
    "key": STRING,
    "namespace": STRING,
    "summary": STRING,
    "text": STRING,
    "links": _LINKS_OUT,
    "moreLinks": INTEGER,
    "version": INTEGER,
    "meta": fields(_META_OUT),
}
STEP_OUT = {**MEMORY_OUT, "depth": INTEGER}
ROW_OUT = {
    "key": STRING,
    "summary": STRING,
    "version": INTEGER,
    "score": _SCORE_OUT,
    "status": _STATUS_OUT,
    "updated_at": STRING,
    "in_degree": INTEGER,
    "out_degree": INTEGER,
}
RESULT_OUT = {
    "key": STRING,
    "summary": STRING,
    "excerpt": STRING,
    "relevance": {"type": "number", "minimum": 0, "maximum": 1},
    "score": _SCORE_OUT,
    "links": _LINKS_OUT,
    "moreLinks": INTEGER,
}
PAGE_OUT = {"pagination": PAGINATION, "message": STRING}
