"""Links: the resources that a server's answer refers to, under the names that clients read them by."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from pegboard.catalog.resources import ResourceCatalog
from pegboard.catalog.stock import alias_of
from pegboard.exactjson import as_list, as_object
from pegboard.servers.message import Message

# Where an answer has its content.
_PLACES = ("content", "messages", "contents")
_KINDS = frozenset({"resource", "resource_link"})
# Of how many links of one answer it is looked up whose they are.
MAX_LINKS = 200


class Links:
    """The links of one answer of a server."""

    def __init__(
        self,
        library: ResourceCatalog,
        server: str,
        scope: str,
        exists: Callable[[str], bool] | None = None,
        holder: str | None = None,
    ) -> None:
        self._library = library
        self._server = server
        # Whom an unlisted resource is known to because of this answer.
        self._scope = scope
        # Which servers its reader may know of: a name must not tell of others.
        self._exists = exists
        # Whose sign-ins decide what servers show, if its reader has some.
        self._holder = holder
        self._left = MAX_LINKS

    def rename(self, result: Message) -> Generator[None, None, Message]:
        """The answer with names that lead here, in small steps; the same object if none has another name."""
        for place in _PLACES:
            items = as_list(result.get(place)) or []
            changed: dict[int, Any] = {}
            for number, item in enumerate(items):
                yield
                renamed = yield from self._rename_item(item)
                if renamed is not item:
                    changed[number] = renamed
            if changed:
                result = {**result, place: [changed.get(number, item) for number, item in enumerate(items)]}
        return result

    def _rename_item(self, item: Any) -> Generator[None, None, Any]:
        content = as_object(item)
        if content is None:
            return item
        if isinstance(inner := content.get("content"), dict):
            renamed = yield from self._rename_item(inner)
            return item if renamed is inner else {**content, "content": renamed}
        kind = content.get("type")
        if not isinstance(kind, str) or kind not in _KINDS:
            return item
        holder = as_object(content.get("resource")) if kind == "resource" else content
        uri = (holder or {}).get("uri")
        if not isinstance(uri, str) or holder is None:
            return item
        name = yield from self._name(uri)
        if name == uri:
            return item
        return {**content, "resource": {**holder, "uri": name}} if holder is not content else {**content, "uri": name}

    def _name(self, uri: str) -> Generator[None, None, str]:
        self._left -= 1
        if self._left < 0:
            # A name that leads to this server, whoever else has the resource.
            return alias_of(self._server, uri)
        return (yield from self._library.name_link(self._server, uri, self._scope, self._exists, self._holder))


def rename_contents(result: Message, own: str, name: object) -> Message:
    """What was read of a resource, under the name that its reader asked for."""
    contents = as_list(result.get("contents"))
    if contents is None:
        return result
    renamed = [{**item, "uri": name} if (as_object(item) or {}).get("uri") == own else item for item in contents]
    return {**result, "contents": renamed}
