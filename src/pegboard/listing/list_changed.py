"""Tells clients that their list changed, if it did; coalesces a burst (debounce); the last change is never lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from pegboard.log import logger

K = TypeVar("K", bound=Hashable)
PAUSE = 0.05


class Digested(Protocol):
    """A list, as far as a change of it can be told."""

    @property
    def digest(self) -> int: ...


@dataclass(slots=True)
class _Subscribers:
    """Everyone with the same view, what they were last told of, and what they were given since."""

    # At first the view as it was when the first of them came, which may take a while to make.
    first: Awaitable[Digested] | None = None
    told: int | None = None
    given: set[int] = field(default_factory=set[int])
    listeners: dict[object, Callable[[], None]] = field(default_factory=dict[object, Callable[[], None]])

    async def know_first(self) -> None:
        """Wait for the view that they began with."""
        if self.first is not None:
            self.told, self.first = (await self.first).digest, None

    def compare(self, digest: int) -> None:
        """Tell everyone of a view that is another than the one they know."""
        if digest == self.told and not self.given - {digest}:
            return
        self.told = digest
        self.given.clear()
        for listener in list(self.listeners.values()):
            try:
                listener()
            except Exception as exc:
                logger().warning("notice.failed", error=type(exc).__name__)


class ListChangedNotifier(Generic[K]):
    """Watches the views of one kind on behalf of clients; whoever has the same key has the same view."""

    def __init__(self, view: Callable[[K], Digested | Awaitable[Digested]]) -> None:
        # The view as it is now: at once, or, where it takes long to make, what comes of it.
        self._view = view
        self._looking: asyncio.Task[None] | None = None
        self._audiences: dict[K, _Subscribers] = {}
        self._timer: asyncio.TimerHandle | None = None

    def subscribe(self, wanted: K, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` after each change of this view; gives back what ends it."""
        audience = self._audiences.get(wanted)
        if audience is None:
            audience = self._audiences[wanted] = _Subscribers()
            view = self._view(wanted)
            if isinstance(view, Awaitable):
                audience.first = view
            else:
                audience.told = view.digest
        token = object()
        audience.listeners[token] = listener

        def unsubscribe() -> None:
            audience.listeners.pop(token, None)
            if not audience.listeners and self._audiences.get(wanted) is audience:
                del self._audiences[wanted]

        return unsubscribe

    def has_listener(self, wanted: K) -> bool:
        """Whether anybody hears of changes of this view."""
        return wanted in self._audiences

    def record_served(self, wanted: K, view: Digested) -> None:
        """A list went out: should it be old by the time of the next look, its reader must hear of it."""
        if (audience := self._audiences.get(wanted)) is not None and view.digest != audience.told:
            audience.given.add(view.digest)

    def schedule_check(self) -> None:
        """Something may have changed: look at it in a moment, together with whatever else changes until then."""
        if self._timer is None and self._audiences:
            self._timer = asyncio.get_running_loop().call_later(PAUSE, self._look)

    def close(self) -> None:
        """No more notices."""
        for under_way in (self._timer, self._looking):
            if under_way is not None:
                under_way.cancel()
        self._audiences.clear()

    def _look(self) -> None:
        self._timer = None
        if self._looking is not None and not self._looking.done():
            # That look may have passed by what changed since.
            self.schedule_check()
        else:
            self._looking = asyncio.get_running_loop().create_task(self._look_at_all())

    async def _look_at_all(self) -> None:
        for wanted, audience in list(self._audiences.items()):
            view = self._view(wanted)
            view = await view if isinstance(view, Awaitable) else view
            await audience.know_first()
            audience.compare(view.digest)
