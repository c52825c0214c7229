"""A pin set: which definitions of one server are approved (those of its first sight, the baseline, among them), which
were rejected, and which were noticed when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from pegboard import exactjson
from pegboard.pins.canonical import FORMAT

# What is pinned, and what tells one of a kind from another.
KINDS: Mapping[str, str] = {"tool": "name", "prompt": "name", "template": "uriTemplate", "instructions": "name"}
# The digest of what is there no longer.
GONE = ""
# So many of a kind are remembered that differ no longer, with names of so many characters together.
_MOST_PAST, _MOST_PAST_TEXT = 1000, 64_000
# What is noticed within so many seconds is of one release.
_MOMENT = 60.0


@dataclass(frozen=True, slots=True)
class Notice:
    """A definition that differs from the approved one: its digest, since when, and the server's version then."""

    digest: str
    at: float
    version: str


@dataclass(slots=True)
class PinSet:
    """Every map is by kind, then by name. A kind that is not in `approved` was never seen."""

    # The server's version when something was approved last.
    version: str = ""
    since: float = 0.0
    approved: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    # All that was ever rejected, so that a server does not get through by going back and forth.
    rejected: dict[str, dict[str, list[str]]] = field(default_factory=dict[str, dict[str, list[str]]])
    noticed: dict[str, dict[str, Notice]] = field(default_factory=dict[str, dict[str, Notice]])
    # By kind: the fingerprint of the last list that was all as approved, so that the same one is not compared again. It
    # decides nothing: sets that differ in it alone are the same.
    unchanged: dict[str, str] = field(default_factory=dict[str, str], compare=False)

    def begin(self, kind: str, digests: Mapping[str, str], at: float, version: str) -> None:
        """The first sight of a kind is its baseline."""
        if kind in self.approved:
            return
        self.approved[kind] = dict(digests)
        self.since = self.since or at
        self.version = self.version or version

    def note(self, kind: str, differing: Mapping[str, str], at: float, version: str) -> list[str]:
        """Keep since when definitions differ; the names of what is news. Those that differ no longer are remembered:
        several gateways, or several copies of a server, may say one thing and the other in turns for a while."""
        known = self.noticed.get(kind, {})
        news = [name for name, digest in differing.items() if not self.is_noticed(kind, name, digest)]
        if news:
            group = self._group(at, version)
            kept = {name: known[name] for name in (*_last(known, differing), *(known.keys() & differing.keys()))}
            self.noticed[kind] = kept | {name: Notice(differing[name], group, version) for name in news}
        return news

    def is_noticed(self, kind: str, name: str, digest: str) -> bool:
        """Whether a definition has been told of."""
        known = self.noticed.get(kind, {}).get(name)
        return known is not None and known.digest == digest

    def doubts(self, kind: str, name: str, digest: str) -> bool:
        """Whether a definition was noticed or rejected, and not approved since."""
        is_known = self.is_noticed(kind, name, digest) or self.is_rejected(kind, name, digest)
        return is_known and self.approved.get(kind, {}).get(name) != digest

    def take_over_rejections(self, kind: str, other: PinSet) -> None:
        """What was rejected for one is rejected for the other."""
        for name, digests in other.rejected.get(kind, {}).items():
            self.reject(kind, [(name, digest) for digest in digests])

    def accept(self, kind: str, names: Mapping[str, str], version: str) -> None:
        """These definitions are approved from now on; one that is gone is pinned no longer."""
        pins = self.approved.setdefault(kind, {})
        for name, digest in names.items():
            if digest == GONE:
                pins.pop(name, None)
            else:
                pins[name] = digest
            # That it was noticed is kept: whoever looked at it and at others may still decide about those.
            self._forget_rejection(kind, name, digest)
        self.version = version or self.version

    def reject(self, kind: str, definitions: Iterable[tuple[str, str]]) -> None:
        """These definitions, by name and digest, are not to be told of any more, and never to be served."""
        for name, digest in definitions:
            known = self.rejected.setdefault(kind, {}).setdefault(name, [])
            if digest not in known:
                known.append(digest)

    def is_rejected(self, kind: str, name: str, digest: str) -> bool:
        """Whether somebody has rejected this definition."""
        return digest in self.rejected.get(kind, {}).get(name, ())

    def decides_as(self, other: PinSet) -> bool:
        """Whether the same is approved and rejected, whatever was noticed."""
        return self.approved == other.approved and self.rejected == other.rejected

    def digests(self) -> set[str]:
        """Those of all approved definitions."""
        return {digest for pins in self.approved.values() for digest in pins.values()}

    def to_json(self) -> str:
        """What is kept of it."""
        noticed = {
            kind: {name: [each.digest, each.at, each.version] for name, each in notices.items()}
            for kind, notices in self.noticed.items()
        }
        members = {
            "format": FORMAT,
            "version": self.version,
            "since": self.since,
            "approved": self.approved,
            "rejected": self.rejected,
            "noticed": noticed,
            "unchanged": self.unchanged,
        }
        return exactjson.dump(members).decode()

    @classmethod
    def of_json(cls, text: str) -> PinSet:
        """A set as it was kept."""
        members = exactjson.parse_object(text)
        noticed: dict[str, dict[str, list[Any]]] = members["noticed"]
        return cls(
            version=str(members["version"]),
            since=float(members["since"]),
            approved=members["approved"],
            rejected=members["rejected"],
            noticed={
                kind: {name: Notice(str(each[0]), float(each[1]), str(each[2])) for name, each in notices.items()}
                for kind, notices in noticed.items()
            },
            unchanged=members.get("unchanged", {}),
        )

    def _forget_rejection(self, kind: str, name: str, digest: str) -> None:
        known = self.rejected.get(kind, {}).get(name, [])
        if digest in known:
            known.remove(digest)

    def _group(self, at: float, version: str) -> float:
        """The moment of what was noticed just before of the same version: it belongs to the same release."""
        before: Iterable[Notice] = (each for notices in self.noticed.values() for each in notices.values())
        near = [each.at for each in before if each.version == version and 0 <= at - each.at < _MOMENT]
        return min(near, default=at)


def _last(known: Mapping[str, Notice], differing: Mapping[str, str]) -> list[str]:
    """What differs no longer, the latest of it."""
    past = sorted(known.keys() - differing.keys(), key=lambda name: known[name].at, reverse=True)[:_MOST_PAST]
    ends = accumulate(map(len, past))
    return [name for name, end in zip(past, ends, strict=True) if end <= _MOST_PAST_TEXT]
