"""What `tool_find` found, for providers that load tools by themselves."""

from __future__ import annotations

from pegboard.exactjson import as_list, as_object
from pegboard.formats.calls import part
from pegboard.formats.content import data_of

FIND = "tool_find"
# Beside a search that loads what it finds, the tool's own words (load it, or call it by name) would mislead.
FIND_DESCRIPTION = (
    "Search all tools of all servers by what you want to do. The tools that are found join your tools at once."
)


def hit_names(result: object) -> list[str]:
    """The names of the tools in a result of `tool_find`, best first."""
    structured = as_object(part(data_of(result), "structuredContent")) or {}
    data = as_object(structured.get("data")) or {}
    hits = [as_object(each) or {} for each in as_list(data.get("tools")) or []]
    return [name for hit in hits if isinstance(name := hit.get("name"), str)]
