"""Pins of all servers: judges what servers say by what is approved, and keeps decisions.

What a server says is compared when it says it, never when a client asks. What is approved is in memory and in storage;
a decision is a change of a row there, which every gateway on that storage follows.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from pegboard import exactjson
from pegboard.config.settings import ChangePolicy, ServerSpec
from pegboard.log import logger
from pegboard.pace import take_off_loop
from pegboard.pins.change import DefinitionChange, describe_item, find_renames
from pegboard.pins.lock_file import LockFile, read_lock
from pegboard.pins.marks import find_marks
from pegboard.pins.pin_set import GONE, PinSet
from pegboard.pins.pin_state import PinState
from pegboard.pins.review import (
    Outcome,
    Review,
    SaidItem,
    explain_withheld,
    fingerprint_list,
    first_of_each,
    read_items,
    recall_items,
    serve,
)
from pegboard.pins.suspicion import find_suspicions
from pegboard.protocol.weight import weight
from pegboard.storage.database import StorageError
from pegboard.storage.pins import PinChange, PinKey, PinStore
from pegboard.task_set import TaskSet

# Items of so many bytes, and a document of so many characters, are read in less time than a thread takes.
_LIGHT, _SHORT = 20_000, 20_000
# So many names are compared in a millisecond.
_FEW_NAMES = 500


class Pins:
    """What is approved of every server."""

    def __init__(self, store: PinStore, policy: Callable[[ServerSpec], ChangePolicy]) -> None:
        self._store = store
        self.policy = policy
        self._states: dict[PinKey, PinState] = {}
        self.lock_file = LockFile()
        # Counts what concerns every server: other settings, another lock file.
        self._generation = 0
        # The version of what is in memory.
        self.version: int | None = None
        # Told of what was noticed of a server, once.
        self.on_news: Callable[[ServerSpec, PinState, Sequence[DefinitionChange]], object] = (
            lambda _spec, _state, _changes: None
        )
        self._tasks = TaskSet()

    async def open(self) -> None:
        """Take over what is kept; `StorageError` if that cannot be."""
        await self.load()

    async def close(self) -> None:
        """End whatever is under way."""
        await self._tasks.close()

    async def load(self) -> set[str]:
        """Take over what is kept now; the names of servers of which something else is decided. What others have noticed
        is no reason to look at a server again: two gateways would do so in turns, for good."""
        version, rows = await self._store.load()
        changed: set[str] = set()
        for server, fingerprint, holder, document in rows:
            state = self._states.setdefault((server, fingerprint, holder), PinState())
            pins = await take_off_loop(len(document), _SHORT, partial(_read_document, server, document))
            if pins is None:
                continue
            before, state.pins = state.pins, pins
            if not pins.decides_as(before):
                state.revision += 1
                changed.add(server)
        self.version = version
        return changed

    async def has_news(self) -> bool:
        """Whether others have changed what is kept."""
        return await self._store.version() != self.version

    async def apply(self, lock: Path | None) -> None:
        """Other settings hold from now on. The lock file is read where a server is locked to it."""
        self.lock_file = LockFile() if lock is None else await asyncio.to_thread(read_lock, lock)
        self._generation += 1
        if self.lock_file.problem:
            logger().warning("definitions.lock.unusable", reason=self.lock_file.problem)

    def is_current(self, spec: ServerSpec, review: Review, holder: str = "") -> bool:
        """Whether nothing was decided since a review."""
        return review.revision == self._revision(self._state(spec, holder))

    def state(self, spec: ServerSpec, holder: str = "") -> PinState:
        """What is known of a server as somebody is shown it."""
        return self._state(spec, holder)

    def states(self, spec: ServerSpec) -> dict[str, PinState]:
        """The same of everybody, by whose sign-in it is."""
        return {
            key[2]: state for key, state in sorted(self._states.items()) if key[:2] == (spec.name, spec.fingerprint)
        }

    def count_waiting(self, spec: ServerSpec) -> int:
        """How many definitions of a server wait for a decision, or for a look."""
        return len(
            {change.long_id for state in self.states(spec).values() for change in state.list_changes() if change.waits}
        )

    def mark(self, spec: ServerSpec) -> tuple[object, ...]:
        """Another one whenever something was said, or decided."""
        return tuple((holder, state.revision, state.reviews) for holder, state in self.states(spec).items())

    async def review(
        self,
        spec: ServerSpec,
        kind: str,
        items: Sequence[Any],
        *,
        version: str = "",
        holder: str = "",
        is_refused: Callable[[Any], bool] = lambda _: False,
    ) -> Review:
        """What of a list is served. What was never seen before is the baseline."""
        key, state, policy = (spec.name, spec.fingerprint, holder), self._state(spec, holder), self.policy(spec)
        state.raw[kind] = items
        if policy == "follow":
            # It costs nothing: nothing is compared, and nothing kept.
            return self._follow(state, kind, items)
        items = first_of_each(kind, items)
        async with state.turn:
            if policy != "locked" and (said := await _recall(state, kind, items)) is not None:
                return self._pass(state, kind, items, said, version)
            known = state.said.get(kind, {})
            # Long lists take their time, in which others are served.
            said = await take_off_loop(weight(items), _LIGHT, lambda: read_items(kind, items, known))
            state.said[kind], state.version = said, version or state.version
            await self._begin(key, state, kind)
            changes = await self._compare(state, spec, kind, policy)
            news = await self._note(key, state, spec, kind, changes)
            state.changes[kind] = changes = await self._compare(state, spec, kind, policy)
            state.reviews += 1
            revision = self._revision(state)
            if not changes:
                if policy != "locked":
                    await self._save_unchanged(key, state, kind, items)
                return Review(list(items), revision=revision)
            await self._fetch(key, state, spec, kind, changes.values())
            state.changes[kind] = changes = await asyncio.to_thread(_with_renames, state, changes)
            served, withheld, state.outcomes[kind] = await asyncio.to_thread(
                serve,
                kind,
                items,
                changes,
                policy=policy,
                approved=state.definitions.get,
                explain=lambda change, word: explain_withheld(spec.name, policy, change, word),
                is_refused=is_refused,
            )
            state.marks[kind] = await asyncio.to_thread(_find_marks, state, kind, changes.values())
            self._tell(spec, state, kind, news)
            return Review(served, withheld, tuple(changes.values()), policy, revision)

    def _follow(self, state: PinState, kind: str, items: Sequence[Any]) -> Review:
        for known in (state.said, state.changes):
            known.pop(kind, None)
        state.reviews += 1
        return Review(list(items), revision=self._revision(state))

    def _pass(
        self, state: PinState, kind: str, items: Sequence[Any], said: dict[str, SaidItem], version: str
    ) -> Review:
        state.said[kind], state.changes[kind], state.version = said, {}, version or state.version
        state.reviews += 1
        return Review(list(items), revision=self._revision(state))

    async def load_approved(self, spec: ServerSpec, holder: str = "") -> dict[str, Any]:
        """Approved definitions of what differs, by digest."""
        key, state = (spec.name, spec.fingerprint, holder), self._state(spec, holder)
        for kind, changes in state.changes.items():
            await self._fetch(key, state, spec, kind, changes.values())
        return state.definitions

    async def decide(
        self, spec: ServerSpec, chosen: Iterable[DefinitionChange], *, accept: bool, holder: str = ""
    ) -> None:
        """Approve what a server says, or reject it; `StorageError` if that cannot be kept."""
        key, state = (spec.name, spec.fingerprint, holder), self._state(spec, holder)
        by_kind: dict[str, dict[str, str]] = {}
        items: list[SaidItem] = []
        for change in chosen:
            by_kind.setdefault(change.kind, {})[change.name] = change.said
            said = state.said.get(change.kind, {}).get(change.name)
            if said is not None and said.digest == change.said:
                items.append(said)
        definitions = await take_off_loop(
            weight([item.definition for item in items]), _LIGHT, lambda: _write_definitions(items)
        )

        # A version is approved as a whole.
        is_all = all(change.name in by_kind.get(change.kind, ()) for change in state.list_changes() if change.waits)

        def decide(pins: PinSet) -> None:
            for kind, names in by_kind.items():
                if accept:
                    pins.accept(kind, names, state.version if is_all else "")
                else:
                    pins.reject(kind, [(name, digest) for name, digest in names.items() if digest != GONE])

        async with state.turn:
            await self._change(key, state, decide, definitions if accept else {})
            state.revision += 1

    def _states_of(self, key: PinKey) -> list[PinState]:
        """What everybody is shown of the same server."""
        return [state for other, state in self._states.items() if other[:2] == key[:2]]

    def _state(self, spec: ServerSpec, holder: str) -> PinState:
        return self._states.setdefault((spec.name, spec.fingerprint, holder), PinState())

    def _revision(self, state: PinState) -> tuple[int, int]:
        return self._generation, state.revision

    async def _begin(self, key: PinKey, state: PinState, kind: str) -> None:
        """Keep the first sight of a kind as its baseline."""
        if kind in state.pins.approved and kind not in state.unsaved:
            return
        said, version = state.unsaved.get(kind) or state.said[kind], state.version
        others = [each.pins for each in self._states_of(key) if each is not state]
        # What waits for a decision, or was rejected, is no baseline for whoever comes next.
        digests = {
            name: item.digest
            for name, item in said.items()
            if not any(pins.doubts(kind, name, item.digest) for pins in others)
        }

        def begin(pins: PinSet) -> None:
            pins.begin(kind, digests, time.time(), version)
            for other in others:
                pins.take_over_rejections(kind, other)

        size = weight([item.definition for item in said.values()])
        definitions = await take_off_loop(size, _LIGHT, lambda: _write_definitions(said.values()))
        try:
            await self._change(key, state, begin, definitions)
        except StorageError as exc:
            # It counts here; the next look will keep it.
            begin(state.pins)
            state.unsaved[kind] = said
            state.definitions |= {item.digest: item.definition for item in said.values()}
            logger().warning("definitions.save.failed", server=key[0], reason=exc.reason)
            return
        state.unsaved.pop(kind, None)
        logger().debug("definitions.baseline", server=key[0], kind=kind, count=len(digests))

    async def _save_unchanged(self, key: PinKey, state: PinState, kind: str, items: Sequence[Any]) -> None:
        """Keep that this list is as approved, so that the next start need not compare it."""
        approved = state.pins.approved.get(kind, {})
        mark = await take_off_loop(weight(items), _LIGHT, lambda: fingerprint_list(items, approved))
        if not mark or not items or state.pins.unchanged.get(kind, "") == mark:
            return

        def save(pins: PinSet) -> None:
            pins.unchanged[kind] = mark

        try:
            await self._change(key, state, save, {})
        except StorageError as exc:
            logger().warning("definitions.save.failed", server=key[0], reason=exc.reason)

    async def _compare(
        self, state: PinState, spec: ServerSpec, kind: str, policy: ChangePolicy
    ) -> dict[str, DefinitionChange]:
        is_locked = policy == "locked"
        approved = self._list_locked(spec, kind) if is_locked else state.pins.approved.get(kind, {})
        size = len(approved) + len(state.said[kind])
        return await take_off_loop(size, _FEW_NAMES, lambda: _compare(state, kind, approved, is_locked=is_locked))

    def _list_locked(self, spec: ServerSpec, kind: str) -> dict[str, str]:
        return {name: item.digest for name, item in self.lock_file.items(spec.name, kind).items()}

    async def _note(
        self, key: PinKey, state: PinState, spec: ServerSpec, kind: str, changes: Mapping[str, DefinitionChange]
    ) -> list[str]:
        """Keep since when something differs; the names of what is news."""
        differing = {name: change.said for name, change in changes.items()}
        is_locked = self.policy(spec) == "locked"
        if _is_known(state, kind, differing, is_locked=is_locked):
            if is_locked:
                state.told[kind] = differing
            return []
        if state.pace.wait():
            self._note_later(key, state, spec)
            if not is_locked:
                # It is no baseline for anybody meanwhile.
                state.pins.note(kind, differing, time.time(), state.version)
            return []
        return await self._keep_news(key, state, kind, differing, is_locked=is_locked)

    async def _keep_news(
        self, key: PinKey, state: PinState, kind: str, differing: dict[str, str], *, is_locked: bool
    ) -> list[str]:
        news = list[str]()
        if is_locked:
            news = [name for name, digest in differing.items() if state.told.get(kind, {}).get(name) != digest]
            state.told[kind] = differing
            return news
        version = state.version

        def note(pins: PinSet) -> None:
            news[:] = pins.note(kind, differing, time.time(), version)

        try:
            await self._change(key, state, note, {})
        except StorageError as exc:
            note(state.pins)
            logger().warning("definitions.save.failed", server=key[0], reason=exc.reason)
        return news

    def _note_later(self, key: PinKey, state: PinState, spec: ServerSpec) -> None:
        if state.waiting is None:
            state.waiting = self._tasks.spawn(self._wait_with_news(key, state, spec))

    async def _wait_with_news(self, key: PinKey, state: PinState, spec: ServerSpec) -> None:
        """Keep and tell what differs by the time that news may be told: the last state is not lost."""
        while pause := state.pace.wait():
            await asyncio.sleep(pause)
        async with state.turn:
            state.waiting = None
            is_locked = self.policy(spec) == "locked"
            for kind, changes in list(state.changes.items()):
                differing = {name: change.said for name, change in changes.items()}
                self._tell(spec, state, kind, await self._keep_news(key, state, kind, differing, is_locked=is_locked))

    def _tell(self, spec: ServerSpec, state: PinState, kind: str, news: Iterable[str]) -> None:
        changes = state.changes.get(kind, {})
        # By somebody else it may have been accepted by now.
        if found := [changes[name] for name in news if name in changes and not changes[name].is_rejected]:
            self.on_news(spec, state, found)

    async def _change(
        self, key: PinKey, state: PinState, change: Callable[[PinSet], None], definitions: Mapping[str, str]
    ) -> None:
        """Change what is kept; what others have changed meanwhile is taken over with it."""

        def work(document: str | None) -> PinChange:
            # As it was in memory where nothing was ever kept, because storage was away.
            pins = PinSet.of_json(document or state.pins.to_json())
            digests = pins.digests()
            change(pins)
            return PinChange(pins.to_json(), definitions, digests - pins.digests())

        document = await self._store.change(key, work)
        state.pins = await take_off_loop(len(document), _SHORT, lambda: PinSet.of_json(document))

    async def _fetch(
        self, key: PinKey, state: PinState, spec: ServerSpec, kind: str, changes: Collection[DefinitionChange]
    ) -> None:
        """Have the approved definitions at hand of what differs."""
        if self.policy(spec) == "locked":
            locked = self.lock_file.items(spec.name, kind)
            state.definitions |= {
                change.approved: locked[change.name].definition for change in changes if change.name in locked
            }
        wanted = {change.approved for change in changes if change.approved} - state.definitions.keys()
        if not wanted:
            return
        try:
            found = await self._store.definitions(key, wanted)
        except StorageError as exc:
            # What cannot be served as it was approved is withheld.
            logger().warning("definitions.load.failed", server=key[0], reason=exc.reason)
            return
        state.definitions |= {digest: exactjson.parse(text) for digest, text in found.items()}


async def _recall(state: PinState, kind: str, items: Sequence[Any]) -> dict[str, SaidItem] | None:
    """What a list says that is known to be as approved; `None` where it has to be compared."""
    approved, mark = state.pins.approved.get(kind), state.pins.unchanged.get(kind)
    if approved is None or mark is None or kind in state.unsaved:
        return None

    def recall() -> dict[str, SaidItem] | None:
        return recall_items(kind, items, approved) if fingerprint_list(items, approved) == mark else None

    return await take_off_loop(weight(items), _LIGHT, recall)


def _is_known(state: PinState, kind: str, differing: Mapping[str, str], *, is_locked: bool) -> bool:
    """Whether nothing of what differs is news."""
    if is_locked:
        return differing.items() <= state.told.get(kind, {}).items()
    return all(state.pins.is_noticed(kind, name, digest) for name, digest in differing.items())


def _compare(
    state: PinState, kind: str, approved: Mapping[str, str], *, is_locked: bool
) -> dict[str, DefinitionChange]:
    """What of a kind differs from what is approved."""
    said, pins = state.said[kind], state.pins
    names = [name for name, item in said.items() if approved.get(name) != item.digest]
    names += [name for name in approved if name not in said]
    changes: dict[str, DefinitionChange] = {}
    for name in names:
        before, after = approved.get(name, ""), said[name].digest if name in said else GONE
        notice = pins.noticed.get(kind, {}).get(name) if pins.is_noticed(kind, name, after) else None
        changes[name] = DefinitionChange(
            kind=kind,
            name=name,
            what="new" if not before else "gone" if after == GONE else "changed",
            approved=before,
            said=after,
            at=notice.at if notice else time.time(),
            version=notice.version if notice else state.version,
            is_rejected=not is_locked and pins.is_rejected(kind, name, after),
        )
    return changes


def _with_renames(state: PinState, changes: Mapping[str, DefinitionChange]) -> dict[str, DefinitionChange]:
    texts = {change.approved: describe_item(state.definitions.get(change.approved)) for change in changes.values()}
    for change in changes.values():
        item = state.said[change.kind].get(change.name)
        if item is not None:
            texts[item.digest] = describe_item(item.definition)
    return {change.name: change for change in find_renames(changes.values(), texts)}


def marks_of(state: PinState, change: DefinitionChange) -> list[str]:
    """Why a change wants a look."""
    return state.marks.get(change.kind, {}).get((change.approved, change.said), [])


def outcome_of(state: PinState, change: DefinitionChange, policy: ChangePolicy) -> Outcome:
    """What clients have of a change."""
    return state.outcomes.get(change.kind, {}).get(change.name, "in use" if policy == "tell" else "withheld")


def _find_marks(state: PinState, kind: str, changes: Iterable[DefinitionChange]) -> dict[tuple[str, str], list[str]]:
    """To look through all words of thousands takes its time."""
    known, found = state.marks.get(kind, {}), dict[tuple[str, str], list[str]]()
    for change in changes:
        said, key = state.said.get(kind, {}).get(change.name), (change.approved, change.said)
        if key in known:
            found[key] = known[key]
        elif said is not None:
            marks = find_marks(kind, state.definitions.get(change.approved), said.definition)
            found[key] = [*marks, *find_suspicions(said.definition)]
    return found


def _write_definitions(items: Iterable[SaidItem]) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in items:
        try:
            found[item.digest] = exactjson.dump(item.definition).decode()
        except exactjson.NotJson:
            # It is left out of every list.
            continue
    return found


def _read_document(server: str, document: str) -> PinSet | None:
    try:
        return PinSet.of_json(document)
    except (exactjson.NotJson, KeyError, TypeError, ValueError, IndexError) as exc:
        logger().error("definitions.unreadable", server=server, reason=str(exc)[:200])
        return None
