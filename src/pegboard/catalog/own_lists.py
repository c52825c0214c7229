"""Own lists: what servers show to each principal's own sign-in, where everybody signs in for themselves.

The registry has the tools of a server's list for everybody (had with the oldest sign-in), and beside them those that
only some sign-ins show. Whoever has a list of their own sees what is in it, as it is in it; whoever has none sees what
all have alike. Nobody's list is had with the sign-in of somebody else, and whoever has signed in is not shown somebody
else's until their own is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from pegboard.access.rule import RuledItem
from pegboard.catalog.notice_pace import NoticePace
from pegboard.catalog.offer_request import ask_offer
from pegboard.catalog.own_list import (
    DIFFERENCE,
    HOLDER,
    LIST,
    OwnList,
    OwnOffer,
    difference_record,
    holder_record,
    offer_in,
)
from pegboard.catalog.registry import ToolRegistry
from pegboard.catalog.resources import ResourceCatalog
from pegboard.catalog.reviews import ALL_KINDS, Reviews, version_of
from pegboard.catalog.server_lists import ListHolder, ServerLists
from pegboard.catalog.server_tools import Exposure
from pegboard.catalog.stock import ServerOffer
from pegboard.catalog.tool_source import ToolSource
from pegboard.config import ServerSpec
from pegboard.log import logger
from pegboard.pace import Pace
from pegboard.result import ToolFailure, as_result
from pegboard.servers.authorization import Authorization
from pegboard.servers.connection_key import is_per_user, key_of
from pegboard.storage import CatalogRecord, CatalogStore, StorageError
from pegboard.task_set import TaskSet
from pegboard.tool import RegisteredTool

T = TypeVar("T", bound=RuledItem)
_LONGEST_PAUSE = 300.0
# Seconds after which it is looked again whether somebody has signed in; where that happens here, it is known at once.
_UNSIGNED_PAUSE = 30.0


@dataclass(frozen=True, slots=True)
class OwnSight:
    """The `Sight` of one principal."""

    principal_id: str
    lists: OwnLists = field(repr=False)

    @property
    def key(self) -> Hashable:
        """The same for all principals whose sign-ins show the same."""
        return self.lists.key_of(self.principal_id)

    def shows(self, item: RuledItem) -> bool:
        """Whether a tool is in the principal's own list; prompts and resources are laid out for each one."""
        return not isinstance(item, RegisteredTool) or self.lists.shows(item, self.principal_id)

    def pick(self, item: T) -> T:
        """The tool as the principal's own list has it."""
        own = self.lists.find(item.server_name, self.principal_id)
        return item if own is None else cast("T", own.tools.get(item.name, item))


class OwnLists:
    """Those of all principals at all servers."""

    def __init__(
        self,
        registry: ToolRegistry,
        library: ResourceCatalog,
        store: CatalogStore,
        sources: Callable[[], Mapping[str, ToolSource]],
        reviews: Reviews,
    ) -> None:
        self._reviews = reviews
        self._registry = registry
        self._library = library
        self._store = store
        self._sources = sources
        self._servers: dict[str, ServerLists] = {}
        # Whether anybody has a sight: until then nobody could tell whose a tool is, and none is registered.
        self._is_used = False
        # Have clients told whose list is another now, where the registry is as it was.
        self.tell: Callable[[], object] = lambda: None
        # Who has the credentials of principals.
        self.authorize: Callable[[ServerSpec, str], Authorization | None] = lambda _spec, _principal: None
        self._notices = NoticePace[tuple[str, str]](lambda who: self._ask_again(*who), lambda who: who[0] in sources())
        self._tasks = TaskSet()
        self._publishing = asyncio.Lock()

    def sight(self, principal_id: str) -> OwnSight:
        """What a principal sees."""
        if not self._is_used:
            self._is_used = True
            for name in self._servers:
                for _ in self._comparison(name):
                    pass
        return OwnSight(principal_id, self)

    def find(self, server: str | None, holder: str) -> OwnList | None:
        """The list that a server shows to a principal's own sign-in, if it is known."""
        known = self._servers.get(server or "")
        found = None if known is None else known.holders.get(holder)
        return None if found is None else found.list

    def shows(self, tool: RegisteredTool, holder: str) -> bool:
        """Whether a principal sees a tool."""
        known = self._servers.get(tool.server_name or "")
        if known is None:
            return True
        found = known.holders.get(holder)
        if found is not None and found.list is not None:
            return tool.name in found.list.tools
        if known.hides_common(found):
            return False
        return known.common is None or tool.name in known.common

    def key_of(self, holder: str) -> Hashable:
        """The same for all principals that see the same."""
        return tuple(self._mark(known, known.holders.get(holder)) for known in self._servers.values())

    def _mark(self, known: ServerLists, found: ListHolder | None) -> str | None:
        """A list's digest; an empty text: nothing; `None`: what all have alike."""
        if found is not None and found.list is not None:
            return found.list.key
        return "" if known.hides_common(found) else None

    def needs_sign_in(self, server: str | None, holder: str | None) -> bool:
        """Whether a principal is known not to have signed in to a server that everybody signs in to."""
        known = self._servers.get(server or "")
        found = None if known is None else known.holders.get(holder or "")
        return found is not None and found.is_signed_in is False

    def count_changes(self, server: str) -> int:
        """How often it became known that somebody has signed in to a server, or has not: another number is news."""
        known = self._servers.get(server)
        return 0 if known is None else known.changes

    def awaits_list(self, server: str, holder: str) -> bool:
        """Whether a principal has signed in to a server, or may have, that has not said yet what it shows to it."""
        known = self._servers.get(server)
        found = None if known is None else known.holders.get(holder)
        return found is not None and found.list is None and found.is_signed_in is not False

    async def discover(self, holder: str | None, limit: float, server: str | None = None) -> None:
        """Have a principal's own lists asked for that are due, of all servers or of one; give those that were never
        seen, or not since it signed in, a moment to come."""
        if holder is None:
            return
        names = [name for name, source in self._sources().items() if is_per_user(source.spec)]
        waiting = [name for name in names if server in {None, name} and self._refresh(name, holder) is not None]
        if waiting:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit):
                    await asyncio.gather(*(self._settle(name, holder) for name in waiting))

    async def _settle(self, name: str, holder: str) -> None:
        """Wait until a list is not asked for any more; who signs in meanwhile has it asked for once more."""
        while name in self._sources() and (asking := self._refresh(name, holder)) is not None:
            await asyncio.wait([asking])

    def on_list_changed(self, server: str, holder: str) -> None:
        """A server said to one principal that its lists changed."""
        self._notices.note((server, holder))

    def expect(self, server: str, holder: str) -> None:
        """A principal signed in just now: what it was shown before without that is its own no longer."""
        source = self._sources().get(server)
        if source is not None and is_per_user(source.spec):
            found = self._holder(server, holder)
            found.version, found.is_signed_in, found.is_settled = found.version + 1, None, False
            found.fresh_until = 0.0
            if found.list is None:
                self._registry.review_sights()

    def on_signed_in(self, server: str, holder: str) -> None:
        """A principal signed in, or has other credentials, and the server is asked with them from now on."""
        source = self._sources().get(server)
        if source is not None and is_per_user(source.spec):
            found = self._holder(server, holder)
            found.version, found.is_signed_in, found.is_settled = found.version + 1, None, False
            self._ask_again(server, holder)

    async def on_signed_out(self, server: str, holder: str) -> None:
        """A principal signed out: what its sign-in showed is its own no longer."""
        known, source = self._servers.get(server), self._sources().get(server)
        if known is None or source is None or (found := known.holders.get(holder)) is None:
            return
        found.version += 1
        await self._note_unsigned(source.spec, holder, found)

    async def follow(self, name: str, *, again: bool = False) -> None:
        """A server's list for everybody is another, or how it is to be shown, or (`again`) what is approved of it."""
        known, source = self._servers.get(name), self._sources().get(name)
        if known is None or source is None:
            return
        if not is_per_user(source.spec):
            await self.forget(source.spec)
            return
        for holder, found in list(known.holders.items()):
            own = found.list
            if own is not None and (again or own.exposure != Exposure.of(source.spec)):
                made = await self._make(source, holder, own.offer, own.digest)
                # Another one that came meanwhile is the newer one.
                found.list = made if found.list is own else found.list
        await self._publish(name)

    def put_away(self, name: str) -> None:
        """A server's things are not to be listed until it is followed again."""
        if name in self._servers:
            self._registry.put_private_tools(name, {})
            self._library.put_own(name, {})

    async def forget(self, spec: ServerSpec) -> None:
        """A server was taken out of the config, or shows everybody the same from now on."""
        known = self._leave(spec.name)
        if known is None:
            return
        for holder in known.holders:
            await self._store.forget(f"{spec.name}{HOLDER}{holder}", spec.fingerprint)
        for own in known.lists():
            await self._store.forget(f"{spec.name}{LIST}{own.digest}", spec.fingerprint)
        await self._store.forget(f"{spec.name}{DIFFERENCE}", spec.fingerprint)

    def _leave(self, name: str) -> ServerLists | None:
        """A server is not known any more."""
        self.put_away(name)
        known = self._servers.pop(name, None)
        for found in known.holders.values() if known is not None else ():
            if found.asking is not None:
                found.asking.cancel()
        return known

    async def restore(self, spec: ServerSpec) -> None:
        """Take over what is on disk of one server, if nothing is known of it as it is now."""
        known = self._servers.get(spec.name)
        if known is not None and known.fingerprint != spec.fingerprint:
            self._leave(spec.name)
        if is_per_user(spec) and spec.name not in self._servers:
            stored = await self._store.load()
            await self.load(each for each in stored if each.server.partition(" ")[0] == spec.name)

    async def load(self, records: Iterable[CatalogRecord]) -> None:
        """Take over what earlier runs have seen of the servers that are configured now."""
        for name, source in self._sources().items():
            if is_per_user(source.spec):
                self._servers.setdefault(name, ServerLists(source.spec.fingerprint))
        names: set[str] = set()
        kept = {(record.server, record.fingerprint): record for record in records if " " in record.server}
        for (title, fingerprint), record in kept.items():
            name, mark, holder = title.partition(HOLDER)
            source = self._sources().get(name if mark else title.removesuffix(DIFFERENCE))
            if source is not None and title == f"{source.spec.name}{DIFFERENCE}":
                self._note_difference(source.spec, fingerprint)
            if not mark or source is None or not is_per_user(source.spec) or source.spec.fingerprint != fingerprint:
                continue
            content = kept.get((f"{name}{LIST}{record.version}", fingerprint))
            if content is None:
                continue
            made = await self._make(source, holder, offer_in(content), record.version)
            found = self._holder(name, holder)
            found.list, found.is_settled = made, True
            names.add(name)
            age = max(0.0, time.time() - record.discovered_at)
            found.fresh_until = time.monotonic() + (record.ttl or source.spec.ttl) - age
        for name in names:
            await self._publish(name)

    def _note_difference(self, spec: ServerSpec, fingerprint: str) -> None:
        """An earlier run has seen that people are shown different things."""
        if is_per_user(spec) and spec.fingerprint == fingerprint:
            known = self._lists_of(spec.name)
            known.differs = known.is_difference_kept = True
            known.common, known.is_compared = frozenset(), True

    async def close(self) -> None:
        """End whatever is under way."""
        self._notices.close()
        await self._tasks.close()

    def _lists_of(self, server: str) -> ServerLists:
        known = self._servers.get(server)
        if known is None:
            known = self._servers[server] = ServerLists(self._sources()[server].spec.fingerprint)
        return known

    def _holder(self, server: str, holder: str) -> ListHolder:
        known = self._lists_of(server)
        found = known.holders.use(holder)
        if found is None:
            found = known.holders[holder] = ListHolder()
        return found

    def _refresh(self, name: str, holder: str) -> asyncio.Task[None] | None:
        """Have a list asked for if that is due; what is to be waited for, if it was not seen since the sign-in."""
        source = self._sources()[name]
        if not source.spec.is_usable:
            return None
        found = self._holder(name, holder)
        if found.asking is None and time.monotonic() >= found.fresh_until:
            self._ask(name, holder, found)
        return found.asking if found.list is None or not found.is_settled else None

    def _ask_again(self, name: str, holder: str) -> None:
        """Ask for a list; if it is being asked for already, once more afterwards."""
        found = self._holder(name, holder)
        found.fresh_until = 0.0
        if found.asking is None:
            self._ask(name, holder, found)
        else:
            found.asking.add_done_callback(lambda _: self._refresh(name, holder) if name in self._sources() else None)

    def _ask(self, name: str, holder: str, found: ListHolder) -> None:
        found.asking = self._tasks.spawn(self._fetch(name, holder, found))

        def finish(_: object) -> None:
            found.asking = None

        found.asking.add_done_callback(finish)

    async def _fetch(self, name: str, holder: str, found: ListHolder) -> None:
        """Ask a server for what it shows to a principal's own sign-in, if there is one."""
        source, version = self._sources()[name], found.version
        spec = source.spec
        # A failure, or somebody else's list, is not asked for with every request.
        found.fresh_until = time.monotonic() + min(2.0 ** min(found.failures, 10), _LONGEST_PAUSE)
        authorization = self.authorize(spec, holder)
        if authorization is not None and not authorization.is_fresh:
            await authorization.prepare()
        if found.version != version:
            return
        if authorization is None or authorization.header is None:
            await self._note_unsigned(spec, holder, found)
            return
        if found.is_signed_in is not True:
            found.is_signed_in = True
            self._servers[name].changes += 1
        try:
            ttl, own = await self._ask_server(source, holder, found)
        except ToolFailure as exc:
            found.failures += 1
            logger().info("catalog.own.failed", serverName=name, reason=exc.error.message)
            return
        if found.version != version or self._sources().get(name) is not source or source.spec is not spec:
            found.fresh_until = 0.0
            return
        before, found.list, found.is_settled, found.failures = found.list, own, True, 0
        found.fresh_until = time.monotonic() + (ttl or spec.ttl)
        if before is not own:
            await self._publish(name)
        await self._keep(spec, holder, ttl, before, own)

    async def _ask_server(self, source: ToolSource, holder: str, found: ListHolder) -> tuple[float | None, OwnList]:
        key, known = key_of(source.spec, None, holder), found.list
        offered = (await as_result(source.list_tools(key=key))).unwrap()
        before = ServerOffer() if known is None else known.offer.others
        others, unheard = await ask_offer(source, before, is_known=known is not None, key=key)
        offer = OwnOffer(offered.items, others)
        digest = await Pace().outcome(offer.digest())
        return offered.ttl, await self._make(source, holder, offer, digest, unheard)

    async def _make(
        self, source: ToolSource, holder: str, offer: OwnOffer, digest: str, unheard: Collection[str] = ALL_KINDS
    ) -> OwnList:
        """What is served to a principal of what it was sent; who is served the same shares it."""
        spec, version = source.spec, version_of(source.hello.server_info if source.hello else None)
        exposure = Exposure.of(spec)
        review = await self._reviews.review_tools(spec, offer.tools, version, holder)
        others, mark = await self._reviews.review_offer(spec, offer.others, version, holder, unheard)
        key = f"{digest}{mark if review is None else review.mark + mark}"
        same = (own for own in self._lists_of(spec.name).lists() if own.key == key and own.exposure == exposure)
        if (shared := next(same, None)) is not None:
            return shared
        judged = await self._registry.judge_in_slices(spec.name, offer.tools, exposure, review)
        stock = await self._library.make_stock(spec.name, others, prefix=spec.prefix)
        if not self._reviews.is_current(spec, review, holder):
            # Something else was decided meanwhile.
            return await self._make(source, holder, offer, digest, unheard)
        return OwnList(digest, offer, exposure, judged, stock, key)

    async def _publish(self, name: str) -> None:
        """Have everybody see what is their own now."""
        async with self._publishing:
            if name in self._servers:
                await Pace().outcome(self._comparison(name))
        if (known := self._servers.get(name)) is not None and known.differs and not known.is_difference_kept:
            known.is_difference_kept = True
            try:
                await self._store.save(difference_record(name, known.fingerprint))
            except StorageError as exc:
                known.is_difference_kept = False
                logger().warning("catalog.save.failed", serverName=name, reason=str(exc))

    def _comparison(self, name: str) -> Generator[None]:
        """Find out what only some are shown, list by list, and have that known all at once."""
        known, shared = self._servers[name], self._registry.server(name)
        if shared is None or not self._is_used:
            # Until they are compared.
            known.common = frozenset() if known.lists() or known.differs else known.common
            return
        hidden, more = set[str](), dict[str, RegisteredTool]()
        for own in known.lists():
            hidden.update(each.name for each in shared.tools.values() if not _is_same(own.tools.get(each.name), each))
            more.update((each.name, each) for each in own.tools.values() if each.name not in shared.tools)
            yield
        holders = {holder: found.list for holder, found in known.holders.items() if found.list is not None}
        known.differs = known.differs or bool(hidden or more)
        if len(holders) > 1:
            known.alike = {each.name: each.digest for each in shared.tools.values() if each.name not in hidden}
        common = {each.name: each.digest for each in shared.tools.values() if each.name not in hidden}
        # Once it is known that people are shown different things, what only one is shown may be theirs alone.
        shown = common.items() & known.alike.items() if known.differs else common.items()
        known.common = frozenset(name for name, _ in shown)
        known.is_compared = len(holders) > 1 or known.differs
        self._library.put_own(name, {holder: own.stock for holder, own in holders.items()})
        self._registry.put_private_tools(name, more)

    async def _note_unsigned(self, spec: ServerSpec, holder: str, found: ListHolder) -> None:
        is_news = found.is_signed_in is not False
        found.is_signed_in, found.is_settled = False, True
        found.fresh_until = time.monotonic() + _UNSIGNED_PAUSE
        await self._drop(spec, holder)
        if is_news and (known := self._servers.get(spec.name)) is not None:
            known.changes += 1
            self.tell()

    async def _drop(self, spec: ServerSpec, holder: str) -> None:
        known = self._servers.get(spec.name)
        found = None if known is None else known.holders.get(holder)
        if known is None or found is None or (own := found.list) is None:
            return
        found.list = None
        await self._publish(spec.name)
        try:
            await self._store.forget(f"{spec.name}{HOLDER}{holder}", spec.fingerprint)
            await self._clean_up(spec, own)
        except StorageError as exc:
            logger().warning("catalog.forget.failed", serverName=spec.name, reason=str(exc))

    async def _clean_up(self, spec: ServerSpec, own: OwnList) -> None:
        """Keep no list that is nobody's any more."""
        known = self._servers.get(spec.name)
        if known is None or all(own.digest != each.digest for each in known.lists()):
            await self._store.forget(f"{spec.name}{LIST}{own.digest}", spec.fingerprint)

    async def _keep(
        self, spec: ServerSpec, holder: str, ttl: float | None, before: OwnList | None, own: OwnList
    ) -> None:
        try:
            if before is not own:
                await self._store.save(own.record(spec.name, spec.fingerprint))
            await self._store.save(holder_record(spec.name, spec.fingerprint, holder, own.digest, time.time(), ttl))
            if before is not None:
                await self._clean_up(spec, before)
        except StorageError as exc:
            logger().warning("catalog.save.failed", serverName=spec.name, reason=str(exc))


def _is_same(own: RegisteredTool | None, tool: RegisteredTool) -> bool:
    return own is not None and own.digest == tool.digest
