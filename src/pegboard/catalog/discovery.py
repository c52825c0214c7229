"""Discovery: asks servers for their tools when that is due, in parallel, and keeps what it had when one fails.

Whoever wants the tools of a server that is being asked waits for the same answer (single flight).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from pegboard.catalog.cuts import Cuts
from pegboard.catalog.introductions import Introductions
from pegboard.catalog.notice_pace import NoticePace
from pegboard.catalog.offer_request import ask_offer
from pegboard.catalog.own_lists import OwnLists
from pegboard.catalog.record import are_equal, make_record
from pegboard.catalog.registry import ToolRegistry
from pegboard.catalog.resources import ResourceCatalog
from pegboard.catalog.reviews import ALL_KINDS, Reviews, version_of
from pegboard.catalog.server_tools import Exposure
from pegboard.catalog.stock import ServerOffer
from pegboard.catalog.tool_source import Introduction, Offered, ToolSource
from pegboard.config import ServerSpec
from pegboard.log import logger, trace_scope
from pegboard.pace import Pace
from pegboard.pins.pins import Pins
from pegboard.result import ToolError, ToolErrorCode, ToolResult, as_result
from pegboard.storage import CatalogRecord, CatalogStore, StorageError

_LONGEST_PAUSE = 300.0
_OTHERS = 1.0
_LATER = 30.0


class Discovery:
    """Fills the registry from servers and from the catalog on disk."""

    def __init__(
        self,
        registry: ToolRegistry,
        store: CatalogStore,
        sources: Callable[[], Mapping[str, ToolSource]],
        *,
        may_try: Callable[[str], bool] = lambda _: True,
        clock: Callable[[], float] = time.monotonic,
        library: ResourceCatalog | None = None,
        pins: Pins | None = None,
    ) -> None:
        self._registry = registry
        self._library = library or ResourceCatalog()
        self._store = store
        self._sources = sources
        # Whether a server that failed lately may be tried again in the background.
        self._may_try = may_try
        self._running: dict[str, asyncio.Task[ToolResult[int]]] = {}
        self._again: set[str] = set()
        self.notices = NoticePace[str](self.soon, self._is_enabled)
        # What servers show to each principal's own sign-in.
        self.reviews = Reviews(pins)
        self.own = OwnLists(registry, self._library, store, sources, self.reviews)
        # Prompts, resources and templates as servers sent them; the library has what is served of them.
        self._said: dict[str, ServerOffer] = {}
        # What is left out of each server's lists because they are too long, by kind.
        self.cuts = Cuts()
        self._clock = clock
        # How often a server failed in a row, and until when it is left alone in the background.
        self._failures: dict[str, tuple[int, float]] = {}
        # Timers of servers never seen that failed: nobody lists them, so nobody would ask them again.
        self._retries: dict[str, asyncio.TimerHandle] = {}
        # What storage says went wrong last, by server.
        self.errors: dict[str, str] = {}
        # What was said of each server's last failure.
        self._logged_errors: dict[str, str] = {}
        self.stale_since: dict[str, float] = {}
        self._introductions = Introductions(self.reviews)
        self.instructions, self.capabilities = self._introductions.instructions, self._introductions.capabilities
        # Servers that an older Pegboard has seen, which asked for nothing but tools.
        self._unasked: set[str] = set()
        self._own_ttl: dict[str, float | None] = {}
        self._asking: dict[asyncio.Task[None], str] = {}
        self._latest: dict[str, asyncio.Task[None]] = {}

    async def discover_all_tools(self, trace: str | None = None) -> ToolResult[dict[str, int]]:
        """Ask every enabled server whose tools are not fresh, all at once; the first error, if any, is the result."""
        with trace_scope(trace):
            sources = self._sources()
            for name in self._registry.servers():
                if name not in sources or not sources[name].spec.enabled:
                    await self.put_away(name)
            due = [name for name in self._list_enabled() if self._registry.is_discovery_stale(name)]
            return await self.refresh(due)

    async def refresh(self, names: list[str], trace: str | None = None) -> ToolResult[dict[str, int]]:
        """Ask these servers now."""
        with trace_scope(trace):
            logger().info("tools.discovery.started", serverCount=len(names))
            results = await asyncio.gather(*(asyncio.shield(self._start(name)) for name in names))
            error = next((result.error for result in results if result.error is not None), None)
            if error is not None:
                return ToolResult[dict[str, int]].failed(error)
            return ToolResult[dict[str, int]].ok({"registered": sum(result.data or 0 for result in results)})

    async def discover(self, name: str, *, for_call: bool = False) -> ToolResult[int]:
        """Ask one server now; whoever else asks meanwhile gets the same answer."""
        with trace_scope():
            if name not in self._running:
                logger().info("tools.discovery.started", serverCount=1)
            return await asyncio.shield(self._start(name, for_call=for_call))

    async def settle(self, name: str) -> None:
        """Wait until a server is not being asked."""
        if (asking := self._running.get(name)) is not None:
            await asyncio.wait([asking])

    def soon(self, name: str) -> None:
        """Ask one server in the background; if it is being asked already, once more afterwards."""
        if name in self._running:
            self._again.add(name)
        else:
            self._begin([name])

    def on_list_changed(self, name: str) -> None:
        """A server said that its lists changed: ask it, at once the first time, then with pauses that grow."""
        self.notices.note(name)

    def _is_enabled(self, name: str) -> bool:
        return (source := self._sources().get(name)) is not None and source.spec.enabled

    def refresh_stale(self) -> None:
        """Whatever is past its TTL is asked again in the background; time alone never starts a process."""
        for name in self._list_enabled():
            self.refresh_if_stale(name)

    def refresh_if_stale(self, name: str) -> None:
        """The same for one server."""
        source = self._sources().get(name)
        if source is None or self._registry.server(name) is None or not self._registry.is_discovery_stale(name):
            return
        if (source.is_connected or not source.is_process) and self._due(name):
            self.soon(name)

    async def discover_new(self, limit: float) -> None:
        """Give servers never seen before a moment to introduce themselves; the rest goes on in the background."""
        unseen = [name for name in self._list_enabled() if self._is_unseen(name) or name in self._unasked]
        self._begin([name for name in unseen if self._due(name)])
        waiting = [self._running[name] for name in unseen if name in self._running]
        if waiting:
            await asyncio.wait(waiting, timeout=limit)

    def list_starting(self) -> list[str]:
        """Servers that are being asked for the first time, or are about to be: what they have is not known yet."""
        # One that failed in an earlier run is away for all that is known.
        tried = self._failures.keys() | self.errors.keys()
        return [name for name in self._list_enabled() if self._is_unseen(name) and name not in tried]

    def discover_if_new(self, name: str) -> None:
        """Ask a server in the background if it was never seen."""
        if self._is_unseen(name) and self._due(name):
            self.soon(name)

    async def discover_resources(self, limit: float) -> None:
        """The same for prompts, resources and templates of servers whose tools are known already."""
        waiting = [task for task, name in self._asking.items() if not self._library.knows(name)]
        if waiting:
            await asyncio.wait(waiting, timeout=limit)

    async def load(self) -> dict[str, CatalogRecord]:
        """Take over what earlier runs have seen of the servers that are configured now."""
        records: dict[str, CatalogRecord] = {}
        sources, stored = self._sources(), await self._store.load()
        for record in stored:
            source = sources.get(record.server)
            if source is not None and source.spec.fingerprint == record.fingerprint:
                records[record.server] = record
        # First: nobody is to see what is not for all.
        await self.own.load(stored)
        pace = Pace(waits=False)
        for name, record in records.items():
            await self._take_over(sources[name], record, pace)
        for (name, fingerprint), message in (await self._store.errors()).items():
            if (source := sources.get(name)) is not None and source.spec.fingerprint == fingerprint:
                self.errors[name] = message
        return records

    async def restore(self, name: str) -> None:
        """Take over what is on disk of one server, for instance when it is enabled again."""
        source = self._sources().get(name)
        self._forgive(name)
        if source is None:
            return
        await self.own.restore(source.spec)
        stored = self._registry.server(name) is None
        record = await self._store.load_one(name, source.spec.fingerprint) if stored else None
        if self._registry.server(name) is not None:
            # Newer than anything on disk; only how it is shown may have changed.
            await self.review(name)
        elif record is not None and record.fingerprint == source.spec.fingerprint:
            await self._take_over(source, record)

    async def review(self, name: str) -> None:
        """Serve what a server said last as it is to be served now: something was decided, or is set in another way."""
        source, known = self._sources().get(name), self._registry.server(name)
        if source is None or known is None:
            return
        if await self._register(source, known.raw, known.ttl, known.discovered_at, again=True):
            await self._put_offer(source.spec, self._said.get(name, ServerOffer()))
            await self._introductions.serve(source.spec)
        elif source.spec.enabled and self._registry.server(name) is known:
            # Something else was decided meanwhile.
            await self.review(name)

    async def put_away(self, name: str) -> None:
        """Take out of the catalog what a server has, until it is restored or discovered again."""
        self.own.put_away(name)
        self.reviews.forget(name)
        self._said.pop(name, None)
        self._registry.remove_server_tools(name)
        await self._library.remove(name)

    async def forget(self, spec: ServerSpec) -> None:
        """A server was taken out of the config."""
        self._forgive(spec.name)
        self._introductions.forget(spec.name)
        self.errors.pop(spec.name, None)
        self._logged_errors.pop(spec.name, None)
        self.cuts.pop(spec.name, None)
        await self.put_away(spec.name)
        await self.own.forget(spec)
        await self._store.forget(spec.name, spec.fingerprint)

    async def close(self) -> None:
        """End whatever is under way."""
        self._again.clear()
        self.notices.close()
        for timer in self._retries.values():
            timer.cancel()
        tasks: list[asyncio.Task[Any]] = [*self._running.values(), *self._asking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, self.own.close(), return_exceptions=True)

    def _list_enabled(self) -> list[str]:
        return [name for name, source in sorted(self._sources().items()) if source.spec.enabled]

    def next_try_in(self, name: str) -> float | None:
        """Seconds until a server that was never seen is asked again."""
        return max(0.0, self._failures[name][1] - self._clock()) if name in self._retries else None

    def _begin(self, names: list[str]) -> None:
        """Ask servers in the background that nobody asks now."""
        if not names:
            return
        with trace_scope():
            logger().info("tools.discovery.started", serverCount=len(names))
            for name in names:
                self._start(name)

    def _start(self, name: str, *, for_call: bool = False) -> asyncio.Task[ToolResult[int]]:
        task = self._running.get(name)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._discover(name, for_call=for_call))
            self._running[name] = task
            task.add_done_callback(lambda done: self._on_done(name, done))
        return task

    def _retry(self, name: str) -> None:
        """The time has come to ask a server again that was never seen."""
        self._retries.pop(name, None)
        if name not in self._running and self._is_unseen(name):
            if self._due(name):
                self.soon(name)
            else:
                self._retry_in(name, _LATER)

    def _retry_in(self, name: str, pause: float) -> None:
        self._retries[name] = asyncio.get_running_loop().call_later(pause, self._retry, name)

    def _is_unseen(self, name: str) -> bool:
        source = self._sources().get(name)
        return source is not None and source.spec.is_usable and self._registry.server(name) is None

    def _due(self, name: str) -> bool:
        """Whether a server may be asked in the background: nobody asks it now, and it did not fail just before."""
        _, until = self._failures.get(name, (0, 0.0))
        return name not in self._running and self._clock() >= until and self._may_try(name)

    def _record_failure(self, name: str) -> None:
        self.stale_since.setdefault(name, time.time())
        times, _ = self._failures.get(name, (0, 0.0))
        pause = min(2.0 ** min(times, 10), _LONGEST_PAUSE)
        self._failures[name] = times + 1, self._clock() + pause
        if self._is_unseen(name) and name not in self._retries:
            self._retry_in(name, pause)

    def _forgive(self, name: str) -> None:
        self.stale_since.pop(name, None)
        self._failures.pop(name, None)
        if timer := self._retries.pop(name, None):
            timer.cancel()

    def _on_done(self, name: str, task: asyncio.Task[ToolResult[int]]) -> None:
        if self._running.get(name) is task:
            del self._running[name]
        if not task.cancelled() and name in self._again:
            self._again.discard(name)
            self.on_list_changed(name)

    async def _discover(self, name: str, *, for_call: bool) -> ToolResult[int]:
        with trace_scope():
            return await self._discover_traced(name, for_call=for_call)

    async def _discover_traced(self, name: str, *, for_call: bool) -> ToolResult[int]:
        source = self._sources().get(name)
        if source is None:
            return ToolResult[int].failed(ToolError(ToolErrorCode.INVALID_INPUT, f"there is no server {name!r}"))
        fingerprint = source.spec.fingerprint
        result = await as_result(self._ask(source, for_call=for_call))
        # One that is not usable was not asked: its entry says why, and only as long as it does.
        if result.error is not None and source.spec.is_usable:
            self._record_failure(name)
            message = result.error.message
            # The same once more is no news: a server that is not there is tried again and again.
            log = logger().debug if self._logged_errors.get(name) == message else logger().warning
            self._logged_errors[name] = message
            log("tools.discovery.server.failed", serverName=name, errorMessage=message)
            await self.save_error(name, fingerprint, message)
        elif result.error is None:
            self._forgive(name)
            self._logged_errors.pop(name, None)
            logger().info("tools.discovery.server.success", serverName=name, toolCount=result.data)
        return result

    async def save_error(self, name: str, fingerprint: str, message: str) -> None:
        """Keep what went wrong, for commands that look at the catalog without a gateway."""
        message = message.removeprefix(f"server {name} could not be connected: ")
        if self.errors.get(name) == message:
            return
        self.errors[name] = message
        try:
            await self._store.save_error(name, fingerprint, message)
        except StorageError as exc:
            logger().warning("catalog.save.failed", serverName=name, reason=str(exc))

    async def _ask(self, source: ToolSource, *, for_call: bool) -> int:
        asked = source.spec.fingerprint
        is_known = self._registry.server(source.spec.name) is not None
        others = asyncio.get_running_loop().create_task(self._ask_others(source, asked, is_known=is_known))
        self._asking[others] = source.spec.name
        self._latest[source.spec.name] = others
        others.add_done_callback(lambda task: self._asking.pop(task, None))
        offered = await source.list_tools(for_call=for_call)
        spec = source.spec
        if not self._counts(source, asked):
            return 0
        self.cuts.record(spec.name, "tools", offered.cut)
        count = await self._take_in(source, asked, offered)
        if count is None:
            return 0
        hello = source.hello
        if hello is not None:
            await self._introductions.record(spec, hello)
            # Most servers answer all at once; one that is slow with its prompts has its tools all the same.
            await asyncio.wait({others}, timeout=_OTHERS)
            if not self._counts(source, asked):
                return count
            self._own_ttl[spec.name] = offered.ttl
            await self._save(spec, hello)
        return count

    async def _take_in(self, source: ToolSource, asked: str, offered: Offered) -> int | None:
        """Register what a server offers; `None` if that no longer matters by then."""
        spec, known = source.spec, self._registry.server(source.spec.name)
        ttl, exposure = offered.ttl or spec.ttl, Exposure.of(spec)
        if known is not None and known.exposure == exposure and await are_equal(known.raw, offered.items):
            self._registry.touch(spec.name, ttl)
            return len(known.tools)
        version = version_of(source.hello.server_info if source.hello else None)
        review = await self.reviews.review_tools(spec, offered.items, version)
        count = await self._registry.register_in_slices(
            spec.name,
            offered.items,
            exposure=exposure,
            ttl=ttl,
            still=lambda: source.spec is spec and self._counts(source, asked) and self.reviews.is_current(spec, review),
            review=review,
        )
        if count is None and self._counts(source, asked):
            # Only how they are to be shown is another way by now.
            return await self._take_in(source, asked, offered)
        await self.own.follow(spec.name)
        return count

    def _counts(self, source: ToolSource, asked: str) -> bool:
        """Whether what a server said still matters: it may have been disabled, removed or moved meanwhile."""
        return self._is_at(source) and source.spec.enabled and source.spec.fingerprint == asked

    def _is_at(self, source: ToolSource) -> bool:
        return self._sources().get(source.spec.name) is source

    async def _ask_others(self, source: ToolSource, asked: str, *, is_known: bool) -> None:
        """Prompts, resources and templates; a kind that cannot be had now stays as it was."""
        known = self._said.get(source.spec.name, ServerOffer())
        offer, unheard = await ask_offer(source, known, is_known=is_known, cuts=self.cuts)
        if not self._counts(source, asked) or source.hello is None:
            return
        if asyncio.current_task() is not self._latest.get(source.spec.name):
            # It was asked again since, and that answer is the newer one.
            return
        await self._put_offer(source.spec, offer, version_of(source.hello.server_info), unheard=unheard)
        if not self._counts(source, asked):
            return
        self._unasked.discard(source.spec.name)
        if self._registry.server(source.spec.name) is not None and source.spec.name not in self._running:
            # Otherwise whoever waits for this saves all of it at once.
            await self._save(source.spec, source.hello)

    async def _put_offer(
        self,
        spec: ServerSpec,
        offer: ServerOffer,
        version: str = "",
        pace: Pace | None = None,
        unheard: Collection[str] = ALL_KINDS,
    ) -> None:
        """List what of an offer is served."""
        # Another object each time: of two that are reviewed at once the later one counts.
        offer = self._said[spec.name] = replace(offer)
        served, _ = await self.reviews.review_offer(spec, offer, version, unheard=unheard)
        if self._said.get(spec.name) is offer:
            await self._library.put(spec.name, served, prefix=spec.prefix, pace=pace)

    async def _register(
        self,
        source: ToolSource,
        tools: list[Any],
        ttl: float,
        discovered_at: float,
        pace: Pace | None = None,
        version: str = "",
        *,
        again: bool = False,
    ) -> bool:
        """Register tools that are known already, unless the server was asked, changed or removed meanwhile."""
        spec, known = source.spec, self._registry.server(source.spec.name)
        review = await self.reviews.review_tools(spec, tools, version)

        def still() -> bool:
            is_same = source.spec is spec and self._registry.server(spec.name) is known
            return is_same and self._is_at(source) and self.reviews.is_current(spec, review)

        count = await self._registry.register_in_slices(
            spec.name,
            tools,
            exposure=Exposure.of(spec),
            ttl=ttl,
            still=still,
            discovered_at=discovered_at,
            pace=pace,
            review=review,
        )
        await self.own.follow(spec.name, again=again)
        return count is not None

    async def _take_over(self, source: ToolSource, record: CatalogRecord, pace: Pace | None = None) -> None:
        spec = source.spec
        version = version_of(record.server_info)
        if not await self._register(source, record.tools, record.ttl or spec.ttl, record.discovered_at, pace, version):
            return
        self._own_ttl[spec.name] = record.ttl
        await self._introductions.record(spec, record)
        if record.prompts is None:
            self._unasked.add(spec.name)
        else:
            offer = ServerOffer(record.prompts, record.resources, record.templates)
            await self._put_offer(spec, offer, version, pace)

    async def _save(self, spec: ServerSpec, hello: Introduction) -> None:
        said = self._said.get(spec.name)
        record = make_record(spec, hello, self._registry.server(spec.name), said, self._own_ttl.get(spec.name))
        self.errors.pop(spec.name, None)
        try:
            await self._store.save(record)
        except StorageError as exc:
            # The tools are there and can be used; only the next start will have to ask again.
            logger().warning("catalog.save.failed", serverName=spec.name, reason=str(exc))
