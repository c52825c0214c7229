"""Reviews of what servers say: hidden text is left out, and of what changed is served what the pins approve."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from pegboard import exactjson
from pegboard.catalog.definitions import hiding_problem
from pegboard.catalog.stock import ServerOffer
from pegboard.config import ServerSpec
from pegboard.log import logger
from pegboard.names import LONG_NAME, MAX_OWN_NAME, SEPARATOR
from pegboard.pace import take_off_loop
from pegboard.pins.pins import Pins
from pegboard.pins.review import Review
from pegboard.protocol.weight import weight

# How many items that are left out are named, in the log and to people.
_MOST_NAMED = 20
# Items of so many bytes are looked through in less time than a thread takes.
_LIGHT = 20_000
# Kinds of an offer: where they are in it, what tells one from another, and what they are pinned as, if they are.
_KINDS = (("prompts", "name", "prompt"), ("resources", "uri", None), ("templates", "uriTemplate", "template"))
ALL_KINDS = frozenset(kind for kind, _, _ in _KINDS)


class Reviews:
    """Judges everything that a server says of itself. Without pins, all that hides nothing is served."""

    def __init__(self, pins: Pins | None = None) -> None:
        self._pins = pins
        # What is left out besides tools, and why, by server and kind; so is what waits for approval.
        self.refused: dict[str, dict[str, dict[str, str]]] = {}
        self.withheld: dict[str, dict[str, Mapping[str, str]]] = {}

    async def review_tools(
        self, spec: ServerSpec, items: Sequence[Any], version: str = "", holder: str = ""
    ) -> Review | None:
        """What of a list of tools is served; `None`: all of it that can be."""
        if self._pins is None:
            return None
        return await self._pins.review(
            spec,
            "tool",
            items,
            version=version,
            holder=holder,
            is_refused=_refuses(spec),
        )

    def is_current(self, spec: ServerSpec, review: Review | None, holder: str = "") -> bool:
        """Whether nothing was decided since a review."""
        return self._pins is None or review is None or self._pins.is_current(spec, review, holder)

    async def review_offer(
        self,
        spec: ServerSpec,
        offer: ServerOffer,
        version: str = "",
        holder: str = "",
        unheard: Collection[str] = ALL_KINDS,
    ) -> tuple[ServerOffer, str]:
        """What is served of all that is no tool; and a mark, the same for reviews of one offer that serve the same.
        Of kinds that the server did not answer for now, nothing is no first sight."""
        served: list[Sequence[Any]] = []
        marks: list[str] = []
        for kind, key, pinned_as in _KINDS:
            items: Sequence[Any] = getattr(offer, kind)
            is_unseen = not items and kind in unheard
            if self._pins is not None and pinned_as is not None and not is_unseen:
                review = await self._pins.review(
                    spec, pinned_as, items, version=version, holder=holder, is_refused=_refuses(spec)
                )
                if not holder:
                    self.withheld.setdefault(spec.name, {})[kind] = review.withheld
                items = review.served
                marks.append(review.mark)
            served.append(await self._leave_out(spec, kind, key, items, holder))
        return ServerOffer(*served), "".join(marks)

    async def review_instructions(self, spec: ServerSpec, said: str | None, version: str = "") -> str:
        """What a server's own instructions are taken for; an empty text for none."""
        text = exactjson.well_formed(said) if said else ""
        problem = hiding_problem({"instructions": text}) if text and not spec.allows_hidden_text else None
        self._note_refused(spec.name, "instructions", {} if problem is None else {"instructions": problem})
        if problem is not None:
            logger().error("catalog.instructions.invalid", serverName=spec.name, reason=problem)
            text = ""
        if self._pins is None:
            return text
        items = [{"name": "instructions", "text": text}] if text else []
        review = await self._pins.review(spec, "instructions", items, version=version)
        return str(review.served[0]["text"]) if review.served else ""

    def list_refused(self, server: str) -> dict[str, str]:
        """What of a server's prompts, resources and templates is left out, and why."""
        return {name: reason for kind in self.refused.get(server, {}).values() for name, reason in kind.items()}

    def find_withheld_prompt(self, name: str) -> tuple[str, str] | None:
        """The server of a prompt that is not served, by the name that clients would use, and why it is not."""
        server, _, own = name.partition(SEPARATOR)
        reason = self.withheld.get(server, {}).get("prompts", {}).get(own)
        return None if reason is None else (server, reason)

    def forget(self, server: str) -> None:
        """A server is not listed any more."""
        self.refused.pop(server, None)
        self.withheld.pop(server, None)

    async def _leave_out(
        self, spec: ServerSpec, kind: str, key: str, items: Sequence[Any], holder: str
    ) -> Sequence[Any]:
        is_open = spec.allows_hidden_text
        if not items:
            kept, refused = items, dict[str, str]()
        else:
            kept, refused = await take_off_loop(weight(items), _LIGHT, lambda: _split(items, key, is_open=is_open))
        if not holder:
            self._note_refused(spec.name, kind, refused)
        for name, reason in list(refused.items())[:_MOST_NAMED]:
            logger().error("catalog.entry.invalid", serverName=spec.name, entry=name, reason=reason)
        return kept

    def _note_refused(self, server: str, kind: str, refused: dict[str, str]) -> None:
        if refused or kind in self.refused.get(server, {}):
            self.refused.setdefault(server, {})[kind] = refused


def version_of(server_info: Mapping[str, Any] | None) -> str:
    """What a server calls its version."""
    version = (server_info or {}).get("version")
    return version[:100] if isinstance(version, str) else ""


def _refuses(spec: ServerSpec) -> Callable[[Any], bool]:
    """Whether something is left out of a server's lists because of what it hides."""
    return lambda item: not spec.allows_hidden_text and hiding_problem(item) is not None


def _split(items: Sequence[Any], key: str, *, is_open: bool) -> tuple[Sequence[Any], dict[str, str]]:
    """Items that hide nothing and can be kept in mind by name, and why the others are left out."""
    refused: dict[str, str] = {}
    kept: list[Any] = []
    for item in items:
        name = (exactjson.as_object(item) or {}).get(key, "?")
        problem = None if is_open else hiding_problem(item)
        if key != "uri" and isinstance(name, str) and len(name) > MAX_OWN_NAME:
            problem = LONG_NAME
        if problem is None:
            kept.append(item)
        else:
            refused[str(name)[:200]] = problem
    return kept if refused else items, refused
