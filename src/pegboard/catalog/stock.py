"""Stock: what one server offers besides tools, read once and kept."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pegboard import exactjson
from pegboard.catalog.uri_template import MAX_TEMPLATES, Template, Uri, fold_host, origin_of, scheme_of
from pegboard.log import logger
from pegboard.names import compose, public_name

# A resource that somebody else offers under the same URI is found under this, its server, and its own URI.
ALIAS = "pegboard://"
# How many entries that are left out are named in the log: a server can have thousands of them.
MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """A prompt, a resource or a template: what clients call it, whose it is, and what its server calls it."""

    name: str
    server_name: str
    original_name: str
    definition: Mapping[str, Any]
    digest: int
    # The definition as JSON.
    text: bytes = field(default=b"", repr=False, compare=False)

    @property
    def handshake(self) -> None:
        """It is the same in both eras."""
        return

    @property
    def local_only(self) -> bool:
        """What servers offer is for every client."""
        return False

    @property
    def toolset(self) -> None:
        """It is a server's."""
        return

    @property
    def claims_read_only(self) -> bool:
        """To get a prompt or a resource changes nothing."""
        return True


@dataclass(frozen=True, slots=True)
class ServerOffer:
    """What a server offers besides tools, as it sent it."""

    prompts: Sequence[Any] = ()
    resources: Sequence[Any] = ()
    templates: Sequence[Any] = ()

    def compare(self, other: ServerOffer) -> Generator[None, None, bool]:
        """Whether both are the same, in small steps."""
        kinds = ((self.prompts, other.prompts), (self.resources, other.resources), (self.templates, other.templates))
        if any(len(before) != len(after) for before, after in kinds):
            return False
        for before, after in kinds:
            for one, another in zip(before, after, strict=True):
                if not exactjson.is_same(one, another):
                    return False
                yield
        return True


class Stock:
    """The entries of one server, under the names that they have as long as no other server has the same."""

    def __init__(self, server: str, offer: ServerOffer, *, prefix: bool, max_name_length: int) -> None:
        self.server, self.offer, self.prefix = server, offer, prefix
        self._max_name_length = max_name_length
        self.prompts: dict[str, CatalogEntry] = {}
        self.resources: dict[str, CatalogEntry] = {}
        self.templates: dict[str, CatalogEntry] = {}
        self.patterns: list[tuple[Template, CatalogEntry]] = []
        # Resources whose scheme or host is not in lower case, by what they are in lower case.
        self.folded: dict[str, CatalogEntry] = {}
        # Schemes and authorities of its resources and templates.
        self.origins: set[str] = set()
        self._aliases: dict[tuple[str, str], CatalogEntry] = {}
        # What each entry was made of, by its kind and its own name: one that stays the same is not written again.
        self.made_of: dict[tuple[str, str], tuple[Any, CatalogEntry]] = {}
        self._left_out = 0

    def fill(self, before: Stock | None) -> Generator[None, None, None]:
        """Read everything, entry by entry; what cannot be listed is logged and left out."""
        known = before.made_of if before is not None and before.prefix == self.prefix else {}
        kinds = (
            ("name", self.offer.prompts, self.prompts),
            ("uri", self.offer.resources, self.resources),
            ("uriTemplate", self.offer.templates[:MAX_TEMPLATES], self.templates),
        )
        for key, offered, entries in kinds:
            for raw in offered:
                if (entry := self._entry(key, raw, known)) is None:
                    continue
                if entry.name in entries:
                    self._leave_out("catalog.entry.duplicate", entry=entry.original_name)
                    continue
                entries[entry.name] = entry
                self.made_of[key, entry.original_name] = raw, entry
                yield
        for entry in self.templates.values():
            self.patterns.append((Template.of(entry.original_name), entry))
            yield
        for entry in self.resources.values():
            self.origins.add(origin_of(entry.original_name))
            if (folded := fold_host(entry.name)) != entry.name:
                self.folded.setdefault(folded, entry)
            yield
        self.origins.update(template.origin for template, _ in self.patterns if template.origin)
        if self._left_out > MOST_NAMED:
            logger().warning("catalog.entries.left_out", serverName=self.server, count=self._left_out, named=MOST_NAMED)

    @property
    def has_resources(self) -> bool:
        """Whether it has any resources or templates."""
        return bool(self.resources or self.templates)

    def describes(self, uri: Uri) -> Generator[None, None, bool]:
        """Whether a URI is one of its resources or fits one of its templates, but for those without a scheme."""
        if uri.text in self.resources or uri.case_folded.text in self.resources or uri.case_folded.text in self.folded:
            return True
        for template, _ in self.patterns:
            yield
            if template.scheme and template.matches(uri):
                return True
        return False

    @property
    def schemes(self) -> set[str]:
        """The schemes of its origins."""
        return set(map(scheme_of, self.origins))

    def alias(self, entry: CatalogEntry, key: str) -> CatalogEntry:
        """An entry under the name that it has where another server has the same."""
        own = entry.original_name
        alias = self._aliases.get((key, own))
        if alias is None:
            name = alias_of(self.server, own)
            alias = self._aliases[key, own] = _write(name, self.server, own, {**entry.definition, key: name})
        return alias

    def _entry(
        self, key: str, raw: Any, known: Mapping[tuple[str, str], tuple[Any, CatalogEntry]]
    ) -> CatalogEntry | None:
        own = _text(raw, key)
        if own is None:
            kind = "a prompt without a name" if key == "name" else f"a resource without {key}"
            self._leave_out("catalog.entry.invalid", reason=kind)
            return None
        if not exactjson.is_well_formed(own):
            # Nobody could ask for it.
            self._leave_out("catalog.entry.invalid", reason=f"its {key} is not valid Unicode: half of a surrogate pair")
            return None
        kept = known.get((key, own))
        if kept is not None and exactjson.is_same(kept[0], raw):
            return kept[1]
        name = self._name(own) if key == "name" else own
        if key != "name" and fold_host(own).startswith(ALIAS):
            # It could be taken for another server's.
            name = alias_of(self.server, own)
        try:
            return _write(name, self.server, own, raw if name == own else {**raw, key: name})
        except exactjson.NotJson as exc:
            self._leave_out("catalog.entry.invalid", reason=str(exc))
            return None

    def _name(self, own: str) -> str:
        return public_name(compose(self.server, own) if self.prefix else own, self._max_name_length)

    def _leave_out(self, event: str, **why: str) -> None:
        self._left_out += 1
        if self._left_out <= MOST_NAMED:
            logger().error(event, serverName=self.server, **why)


def alias_of(server: str, uri: str) -> str:
    """What clients call a resource whose URI another server has, too."""
    name = f"{ALIAS}{server}/{uri}"
    return exactjson.SurrogateText(name) if isinstance(uri, exactjson.SurrogateText) else name


def _write(name: str, server: str, own: str, definition: Mapping[str, Any]) -> CatalogEntry:
    text = exactjson.dump(definition)
    return CatalogEntry(name, server, own, definition, hash(text), text)


def _text(raw: Any, key: str) -> str | None:
    value = (exactjson.as_object(raw) or {}).get(key)
    return value if isinstance(value, str) and value else None
