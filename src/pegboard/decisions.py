"""Decisions about definitions that changed: what there is to decide, and what comes of it. People decide, by command,
REST and page; no MCP tool does."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pegboard.audit.audit import Audit
from pegboard.catalog.definitions import hiding_problem
from pegboard.catalog.discovery import Discovery
from pegboard.catalog.registry import ToolRegistry
from pegboard.config import ServerSpec
from pegboard.config.settings import LOCK_NAME, ChangePolicy
from pegboard.configured_servers import ConfiguredServers
from pegboard.log import logger
from pegboard.names import nearest
from pegboard.pins.change import DefinitionChange
from pegboard.pins.diff import diff_definitions
from pegboard.pins.lock_file import lock_document
from pegboard.pins.pin_set import GONE, KINDS
from pegboard.pins.pins import Pins, PinState, marks_of, outcome_of
from pegboard.pins.review import read_items
from pegboard.pins.suspicion import find_notes, find_suspicions
from pegboard.result import Conflict, ToolErrorCode, ToolFailure, invalid

# So many differences are in an answer; others are asked for by name.
_MOST_SHOWN = 200
# So many items are named in a record of the audit, and in a message.
_NAMED = 20
# 128 bits: a server that writes definitions for it finds no two with the same.
_REVISION_DIGITS = 32
# What is pinned, by the lists in which it stands.
_LISTS = {"prompt": "prompts", "template": "templates", "instructions": "instructions"}
_NOT_SERVED = frozenset({"withheld", "left out"})


@dataclass(slots=True)
class _Item:
    """One thing that differs, and whose sign-ins are shown it so; everybody has an empty id."""

    change: DefinitionChange
    state: PinState
    holders: list[str] = field(default_factory=list[str])


class Decisions:
    """What is to be decided about the servers of the config."""

    def __init__(
        self, pins: Pins, servers: ConfiguredServers, registry: ToolRegistry, discovery: Discovery, audit: Audit
    ) -> None:
        self._pins = pins
        self._servers = servers
        self._registry = registry
        self._discovery = discovery
        self._audit = audit

    def list_servers(self, admits: Callable[[str], bool]) -> list[dict[str, Any]]:
        """Every server of which something differs from what is approved."""
        rows = [self._row(spec) for name, spec in self._specs() if admits(name)]
        return [row for row in rows if row["items"]]

    def count(self, name: str) -> dict[str, Any]:
        """How much of a server waits for a decision or for a look, how much of that no client has, and how much wants
        a look first; nothing where nothing waits."""
        server = self._servers.by_name.get(name)
        items = [] if server is None else self._items(server.spec)
        if server is None or not any(item.change.waits for item in items):
            return {}
        policy = self._pins.policy(server.spec)
        ids: dict[str, set[str]] = {"waits": set(), "withheld": set(), "wantsLook": set()}
        for item in items:
            is_served = outcome_of(item.state, item.change, policy) not in _NOT_SERVED
            if item.change.is_rejected and not is_served:
                ids.setdefault("rejected", set()).add(item.change.long_id)
            if not item.change.waits:
                continue
            ids["waits"].add(item.change.long_id)
            if not is_served:
                ids["withheld"].add(item.change.long_id)
            if marks_of(item.state, item.change):
                ids["wantsLook"].add(item.change.long_id)
        return {"policy": policy, **{key: len(found) for key, found in ids.items()}}

    async def show(self, name: str, chosen: Sequence[str] = ()) -> dict[str, Any]:
        """What differs of one server, each with its difference and what there is to say of its words."""
        spec = self._spec(name)
        for holder in self._pins.states(spec):
            await self._pins.load_approved(spec, holder)
        items = self._items(spec)
        wanted = self._choose(spec, items, chosen) if chosen else items
        others, edited = self._tools_of_others(name), self._pins.lock_file.edited
        policy = self._pins.policy(spec)
        # To compare long definitions takes its time.
        details = await asyncio.to_thread(
            lambda: [_detail(spec, policy, item, others, is_whole=at < _MOST_SHOWN) for at, item in enumerate(wanted)]
        )
        # What is decided about alike is bound by itself alone, whatever the server says otherwise.
        is_alike = all(item.change.waits and not _is_unacceptable(spec, item) for item in wanted)
        revision = _revision(wanted) if chosen and is_alike else self._revision_of_all(spec, items)
        for item, detail in zip(wanted, details, strict=True) if policy == "locked" else ():
            if (name, item.change.kind, item.change.name) in edited:
                detail["notes"].insert(0, f"its entry in {LOCK_NAME} does not count: its digest does not fit it")
        return {**self._row(spec), "revision": revision, "items": details}

    async def decide(self, name: str, chosen: Sequence[str], revision: str | None, *, accept: bool) -> dict[str, Any]:
        """Accept or reject what differs, or some of it; what was decided about, and what is left."""
        spec = self._spec(name)
        if self._pins.policy(spec) == "locked":
            reason = f"server {name} is locked to {LOCK_NAME}, which alone says what is approved"
            raise Conflict(f"{reason}. To approve what it says now: pegboard lock {name}")
        items = self._items(spec)
        wanted = self._choose(spec, items, chosen) if chosen else items
        is_overruling = accept and any(item.change.is_rejected for item in (wanted if chosen else ()))
        known = (self._revision_of_all(spec, items), *([_revision(wanted)] if chosen else ()))
        if revision is not None and not any(_is_bound(revision, each, is_overruling) for each in known):
            raise Conflict(
                f"something of server {name} was decided or changed since you looked: pegboard changes show {name}"
            )
        choose = self._choose_acceptable if accept else self._choose_rejectable
        wanted = choose(spec, wanted, chosen)
        by_holder: dict[str, list[DefinitionChange]] = {}
        for item in wanted:
            for holder in item.holders:
                by_holder.setdefault(holder, []).append(item.change)
        for holder, changes in by_holder.items():
            await self._pins.decide(spec, changes, accept=accept, holder=holder)
        ids = list(dict.fromkeys(item.change.id for item in wanted))
        if ids:
            verb = "accepted" if accept else "rejected"
            logger().info(f"definitions.{verb}", server=name, count=len(ids))
            self._audit.note(f"definition.{verb}", server=name, detail=_describe(wanted))
            await self._discovery.review(name)
        return {"decided": ids, **self._row(spec)}

    def _choose_acceptable(self, spec: ServerSpec, items: Sequence[_Item], chosen: Sequence[str]) -> list[_Item]:
        """What is approved: all that was not rejected before, or what is named. What hides text stays left out, and is
        no better as the approved one."""
        hidden = [item for item in items if _is_unacceptable(spec, item)]
        wanted = [item for item in items if item not in hidden and (chosen or not item.change.is_rejected)]
        if hidden and (chosen or not wanted):
            names = ", ".join(item.change.id for item in hidden[:_NAMED])
            reason = f"{names} of server {spec.name} cannot be approved: its words hide text"
            raise Conflict(f'{reason}. The server\'s author has to fix it; "unicode": "allow" in its entry allows it')
        return wanted

    def _choose_rejectable(self, spec: ServerSpec, items: Sequence[_Item], chosen: Sequence[str]) -> list[_Item]:
        gone = [item.change.id for item in items if item.change.said == GONE]
        if gone and chosen:
            raise invalid(f"{', '.join(gone[:_NAMED])} of server {spec.name} is gone: there is nothing to reject")
        return [item for item in items if item.change.waits or (chosen and item.change.id not in gone)]

    async def lock_document(self, names: Iterable[str] = ()) -> dict[str, Any]:
        """What a lock file says of what is in force now: of a server that holds changes what is approved, of any other
        one what it says."""
        chosen = set(names)
        for name in chosen:
            self._spec(name)
        specs = [spec for name, spec in self._specs() if not chosen or name in chosen]
        for spec in specs:
            await self._pins.load_approved(spec)
        document = await asyncio.to_thread(self._write_lock, specs)
        unseen = [spec.name for spec in specs if spec.name not in document["servers"]]
        return {**document, "unseen": unseen}

    def _write_lock(self, specs: Iterable[ServerSpec]) -> dict[str, Any]:
        servers = {spec.name: self._lockable(spec) for spec in specs}
        hiding = {spec.name: self._take_out_hidden(spec, servers[spec.name]) for spec in specs}
        return {
            **lock_document({name: kinds for name, kinds in servers.items() if any(kinds.values()) or hiding[name]}),
            "hiding": {name: kinds for name, kinds in hiding.items() if kinds},
        }

    def _take_out_hidden(self, spec: ServerSpec, kinds: dict[str, dict[str, Any]]) -> dict[str, list[str]]:
        """The names, by kind, of what hides text; it is in none of them any more."""
        # All but tools is left out before it is compared.
        refused = self._discovery.reviews.refused.get(spec.name, {})
        hidden = {kind: list(refused[listed]) for kind, listed in _LISTS.items() if refused.get(listed)}
        for kind, items in kinds.items() if not spec.allows_hidden_text else ():
            names = [name for name, definition in items.items() if hiding_problem(definition) is not None]
            for name in names:
                del items[name]
            if names:
                hidden.setdefault(kind, []).extend(names)
        return hidden

    def _lockable(self, spec: ServerSpec) -> dict[str, dict[str, Any]]:
        state, holds = self._pins.state(spec), self._pins.policy(spec) == "hold"
        found: dict[str, dict[str, Any]] = {}
        for kind in KINDS:
            changes = state.changes.get(kind, {})
            items = read_items(kind, state.raw.get(kind, ()), state.said.get(kind, {}))
            said = {name: item.definition for name, item in items.items()}
            for change in changes.values():
                if holds or change.is_rejected:
                    before = state.definitions.get(change.approved)
                    if before is not None and change.what != "gone":
                        said[change.name] = before
                    else:
                        said.pop(change.name, None)
            found[kind] = said
        return found

    def _specs(self) -> list[tuple[str, ServerSpec]]:
        return [(name, server.spec) for name, server in sorted(self._servers.by_name.items())]

    def _spec(self, name: str) -> ServerSpec:
        server = self._servers.by_name.get(name)
        if server is None:
            close = nearest(name[:80], self._servers.by_name, 1)
            hint = f": did you mean {close[0]}?" if close else ""
            raise ToolFailure(ToolErrorCode.NOT_FOUND, f"there is no server {name[:80]!r}{hint}", retryable=False)
        return server.spec

    def _items(self, spec: ServerSpec) -> list[_Item]:
        """What differs, the same of several people's own lists once."""
        found: dict[tuple[str, str, str], _Item] = {}
        for holder, state in self._pins.states(spec).items():
            for change in state.list_changes():
                key = change.long_id, change.approved, change.said
                found.setdefault(key, _Item(change, state)).holders.append(holder)
        return list(found.values())

    def _revision_of_all(self, spec: ServerSpec, items: Iterable[_Item]) -> str:
        """Of all that differs, and of what differed and is approved by now: a decision about one does not make a look
        at the others void."""
        noticed = [
            [f"{kind}:{name}", notice.digest]
            for state in self._pins.states(spec).values()
            for kind, notices in state.pins.noticed.items()
            for name, notice in notices.items()
            if kind in state.said and notice.digest == _digest_of(state, kind, name)
        ]
        return _revision(items, noticed)

    def _choose(self, spec: ServerSpec, items: Sequence[_Item], chosen: Sequence[str]) -> list[_Item]:
        known: dict[str, str] = {}
        for item in items:
            for name in (item.change.long_id, *self._names(spec, item.change)):
                if known.setdefault(name, item.change.long_id) != item.change.long_id:
                    known[name] = ""
        wanted: list[_Item] = []
        for name in chosen:
            if name not in known:
                close = nearest(name[:80], known, 1)
                hint = f": did you mean {close[0]}?" if close else f"; see pegboard changes show {spec.name}"
                raise invalid(f"nothing has changed of {name[:80]!r} of server {spec.name}{hint}")
            if not (long_id := known[name]):
                raise invalid(f"{name[:80]!r} of server {spec.name} may be more than one thing: say tool:NAME")
            wanted += [item for item in items if item.change.long_id == long_id and item not in wanted]
        return wanted

    def _names(self, spec: ServerSpec, change: DefinitionChange) -> tuple[str, ...]:
        """What people call it: its own name, or a tool's name as clients know it."""
        if change.kind != "tool":
            return (change.id,)
        return (change.id, f"{spec.name}__{change.name}")

    def _row(self, spec: ServerSpec) -> dict[str, Any]:
        items, states = self._items(spec), self._pins.states(spec)
        shared = states.get("") or PinState()
        return {
            "server": spec.name,
            "policy": self._pins.policy(spec),
            "waits": self._pins.count_waiting(spec),
            "approvedVersion": shared.pins.version,
            "version": shared.version,
            "revision": self._revision_of_all(spec, items),
            "seen": any(state.pins.approved for state in states.values()),
            "leftOut": self._count_left_out(spec.name),
            "items": [_brief(self._pins, spec, item) for item in items],
        }

    def _count_left_out(self, name: str) -> int:
        known = self._registry.server(name)
        return len(self._discovery.reviews.list_refused(name)) + (0 if known is None else len(known.rejected))

    def _tools_of_others(self, name: str) -> dict[str, tuple[str, Any]]:
        return {
            tool.original_name: (tool.server_name, tool.definition)
            for tool in self._registry.values()
            if tool.server_name is not None and tool.server_name != name
        }


def _brief(pins: Pins, spec: ServerSpec, item: _Item) -> dict[str, Any]:
    change = item.change
    moment = datetime.fromtimestamp(change.at, UTC).isoformat(timespec="seconds")
    row: dict[str, Any] = {
        "id": change.id,
        "kind": change.kind,
        "name": change.name,
        "change": change.what,
        "state": _state(pins.policy(spec), item),
        "since": moment,
        "version": change.version,
        "marks": marks_of(item.state, change),
        **_clients_have(pins.policy(spec), item),
    }
    if change.renamed_from:
        row["renamedFrom"] = change.renamed_from
    # To look for it takes its time; where there is some, it is marked.
    if row["marks"] and _is_unacceptable(spec, item):
        row["hides"] = True
    if any(item.holders):
        row["principals"] = [holder for holder in item.holders if holder]
    return row


def _state(policy: ChangePolicy, item: _Item) -> str:
    """What is done about it now."""
    if item.change.said == GONE:
        return "gone"
    if item.change.is_rejected:
        return "rejected"
    return outcome_of(item.state, item.change, policy)


def _clients_have(policy: ChangePolicy, item: _Item) -> dict[str, str]:
    """What clients have in place of what was rejected, which the state does not say."""
    outcome = outcome_of(item.state, item.change, policy)
    return {"served": outcome} if item.change.is_rejected and item.change.said != GONE else {}


def _is_unacceptable(spec: ServerSpec, item: _Item) -> bool:
    """Whether nobody can approve it, because its words hide text."""
    if spec.allows_hidden_text:
        return False
    said = item.state.said.get(item.change.kind, {}).get(item.change.name)
    return said is not None and hiding_problem(said.definition) is not None


def _detail(
    spec: ServerSpec, policy: ChangePolicy, item: _Item, others: Mapping[str, tuple[str, Any]], *, is_whole: bool
) -> dict[str, Any]:
    change, state, server = item.change, item.state, spec.name
    approved = state.definitions.get(change.approved)
    said = state.said.get(change.kind, {}).get(change.name)
    now = None if said is None else said.definition
    notes = [f"it is not shown among so many: pegboard changes show {server} {shlex.quote(change.id)}"]
    if is_whole:
        notes = [] if now is None else [*find_suspicions(now), *find_notes(server, now, others)]
    return {
        "id": change.id,
        "kind": change.kind,
        "name": change.name,
        "change": change.what,
        "state": _state(policy, item),
        "since": datetime.fromtimestamp(change.at, UTC).isoformat(timespec="seconds"),
        "version": change.version,
        "marks": [mark for mark in marks_of(state, change) if mark not in notes],
        **_clients_have(policy, item),
        **({"renamedFrom": change.renamed_from} if change.renamed_from else {}),
        **({"hides": True} if _is_unacceptable(spec, item) else {}),
        "rejected": change.is_rejected,
        "notes": notes,
        "diff": diff_definitions(change.kind, change.name, approved, now) if is_whole else "",
    }


def _revision(items: Iterable[_Item], noticed: Iterable[list[str]] = ()) -> str:
    """What a server says of these things; and behind it, which of that is rejected."""
    items = list(items)
    said = [[each.change.long_id, each.change.said] for each in items]
    rejected = [each for each, item in zip(said, items, strict=True) if item.change.is_rejected]
    return _hash([*said, *noticed]) + _hash(rejected)


def _hash(words: Iterable[list[str]]) -> str:
    # As JSON, for a server may put into a name whatever would stand between two names.
    unique = sorted(set(map(tuple, words)))
    return hashlib.sha256(json.dumps(unique).encode()).hexdigest()[:_REVISION_DIGITS]


def _is_bound(revision: str, now: str, is_overruling: bool) -> bool:
    """Whether what somebody looked at is what there is now. Only to approve what was rejected takes that nothing was
    rejected since: somebody else may have done that."""
    return revision == now if is_overruling else revision[:_REVISION_DIGITS] == now[:_REVISION_DIGITS]


def _digest_of(state: PinState, kind: str, name: str) -> str:
    said = state.said[kind].get(name)
    return GONE if said is None else said.digest


def _describe(items: Sequence[_Item]) -> str:
    names = [f"{item.change.id} ({item.change.said[:12] or 'gone'})" for item in items[:_NAMED]]
    return ", ".join(names) + (f" and {len(items) - _NAMED} more" if len(items) > _NAMED else "")
