"""Changes of the config as the audit has them: which servers, and that something else changed, never what it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from pegboard.audit.audit import Audit
from pegboard.config import Settings

# What is told in other words, or is nobody's decision.
_OTHERWISE = frozenset({"servers", "auth", "remarks", "own_remarks", "path", "needs_trust"})


def note_changes(audit: Audit, old: Settings, new: Settings) -> None:
    """Record what another config changes."""
    if audit.recorder is None:
        return
    for server, kind in _server_changes(old, new):
        audit.note(f"server.{kind}", server=server)
    if old.auth != new.auth:
        audit.note("auth.changed")
    names = [each.name for each in fields(Settings) if each.name not in _OTHERWISE]
    if changed := [name for name in names if getattr(old, name) != getattr(new, name)]:
        audit.note("config.changed", detail=", ".join(changed))


def _server_changes(old: Settings, new: Settings) -> Iterator[tuple[str, str]]:
    for name in sorted(old.servers.keys() | new.servers.keys()):
        before, after = old.servers.get(name), new.servers.get(name)
        if after is None:
            yield name, "removed"
        elif before is None:
            yield name, "added"
        elif before.enabled != after.enabled:
            yield name, "enabled" if after.enabled else "disabled"
        elif before != after:
            yield name, "changed"
