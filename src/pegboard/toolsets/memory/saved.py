"""A memory as it is saved in a file: everything that it takes to have it again, exactly as it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pegboard.exactjson import as_list, as_object
from pegboard.result import invalid
from pegboard.toolsets.memory.importance import START
from pegboard.toolsets.memory.limits import MAX_SUMMARY, MAX_TEXT, validate_key, validate_links, validate_namespace
from pegboard.toolsets.memory.memory import Link
from pegboard.toolsets.memory.timestamps import exact, seconds_of
from pegboard.toolsets.validation import validate_number, validate_text

_MOST = 2**53
_HISTORY = (
    "version",
    "base",
    "access_count",
    "traverse_count",
    "created_at",
    "updated_at",
    "last_accessed_at",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What a memory went through, from which its score is worked out."""

    version: int = 1
    base: float = START
    access_count: int = 0
    traverse_count: int = 0
    created_at: float
    updated_at: float
    last_accessed_at: float

    @classmethod
    def new(cls, now: float) -> History:
        """That of a memory that is written now."""
        return cls(created_at=now, updated_at=now, last_accessed_at=now)

    @classmethod
    def read(cls, row: Mapping[str, Any], now: float) -> History:
        """That of a saved one; what is left out is as in a new memory."""
        created = _moment(row, "created_at", now)
        updated = _moment(row, "updated_at", created)
        return cls(
            version=_whole(row, "version", 1, 1),
            base=_base(row),
            access_count=_whole(row, "access_count", 0, 0),
            traverse_count=_whole(row, "traverse_count", 0, 0),
            created_at=created,
            updated_at=updated,
            last_accessed_at=_moment(row, "last_accessed_at", updated),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """A memory as it is saved; without a history it is new, or the history of the one that it replaces goes on."""

    namespace: str
    key: str
    summary: str = ""
    text: str = ""
    links: Sequence[Link] = ()
    history: History | None = None

    @classmethod
    def read(cls, row: Mapping[str, Any], namespace: str, now: float) -> Saved:
        """One line of a file, checked as if it were added; `namespace` is where it goes if it does not say."""
        saved = cls(
            namespace=_text(row, "namespace", namespace),
            key=_text(row, "key"),
            summary=_text(row, "summary", ""),
            text=_text(row, "text", ""),
            links=_links(row),
            history=History.read(row, now) if any(name in row for name in _HISTORY) else None,
        )
        return saved.validate()

    def validate(self) -> Saved:
        """This as it is kept, or a refusal that says what of it cannot be."""
        validate_text(self.summary, "summary", MAX_SUMMARY)
        validate_text(self.text, "text", MAX_TEXT, "; write several memories and link them")
        return replace(
            self,
            namespace=validate_namespace(self.namespace),
            key=validate_key(self.key),
            links=validate_links(self.links),
        )

    def to_dict(self) -> dict[str, Any]:
        """As it stands in a file."""
        assert self.history is not None
        return {
            "key": self.key,
            "namespace": self.namespace,
            "summary": self.summary,
            "text": self.text,
            "links": [link.to_dict() for link in self.links],
            "version": self.history.version,
            "base": self.history.base,
            "access_count": self.history.access_count,
            "traverse_count": self.history.traverse_count,
            "created_at": exact(self.history.created_at),
            "updated_at": exact(self.history.updated_at),
            "last_accessed_at": exact(self.history.last_accessed_at),
        }


def _text(row: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = row.get(name, default)
    if not isinstance(value, str):
        raise invalid(f"{name} is missing" if name not in row else f"{name} must be a text")
    return value


def _links(row: Mapping[str, Any]) -> list[Link]:
    given = as_list(row.get("links", []))
    if given is None:
        raise invalid("links must be a list")
    return [_link(each) for each in given]


def _link(given: object) -> Link:
    row = as_object(given)
    if row is None:
        raise invalid("links: each must be an object")
    weight = _number(row, "weight", 0.5)
    return Link(_text(row, "key"), _text(row, "type", "related"), _text(row, "term", ""), float(weight))


def _number(row: Mapping[str, Any], name: str, default: float) -> float:
    value = row.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(f"{name} must be a number")
    return cast("float", value)


def _whole(row: Mapping[str, Any], name: str, default: int, least: int) -> int:
    return validate_number(_number(row, name, default), name, least, _MOST)


def _base(row: Mapping[str, Any]) -> float:
    base = _number(row, "base", START)
    if not 0 <= base <= 100:
        raise invalid(f"base must be between 0 and 100, found {base}")
    return float(base)


def _moment(row: Mapping[str, Any], name: str, default: float) -> float:
    return seconds_of(_text(row, name), name) if name in row else default
