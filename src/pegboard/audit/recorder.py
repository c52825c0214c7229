"""The recorder: takes events where they happen. All it does there is append; a writer has the rest of the work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from pegboard import exactjson
from pegboard.audit.event import AuditEvent

MAX_EVENTS = 65_536
# Bytes of arguments and remarks that wait to be looked at.
MAX_HELD = 64 * 1024 * 1024
# What arguments may weigh to be looked at as a whole; of larger ones, the beginning is.
MAX_ARGUMENTS = 1024 * 1024
# Of arguments that are larger than this, the digest is of the beginning and the length.
DIGEST_BYTES = 64 * 1024
_ARGUMENTS = 7


class Recorder:
    """A bounded queue of events. When it is full the oldest are dropped, and counted."""

    def __init__(self, wake: Callable[[], None], on_lost: Callable[[int], None]) -> None:
        self._events: deque[AuditEvent] = deque()
        self._held = 0
        self._wake = wake
        self._on_lost = on_lost
        # Whether somebody has been told that there is something.
        self._is_awake = False
        # How many were taken or dropped so far: the number of the last one that is not here any more.
        self.gone = 0
        # Since the last time that events were taken.
        self.lost = 0

    def __len__(self) -> int:
        return len(self._events)

    @property
    def last(self) -> int:
        """The number of the event that came last; the first has 1."""
        return self.gone + len(self._events)

    def append(self, event: AuditEvent) -> None:
        """Take an event; from the loop's thread alone."""
        self._events.append(event)
        self._held += _weight(event)
        if len(self._events) > MAX_EVENTS or self._held > MAX_HELD:
            self._drop_oldest()
        if not self._is_awake:
            self._is_awake = True
            self._wake()

    def take(self, most: int) -> tuple[list[AuditEvent], int]:
        """The oldest events, which are not here any more, and how many were lost before them."""
        taken = [self._events.popleft() for _ in range(min(most, len(self._events)))]
        self._held -= sum(map(_weight, taken))
        self.gone += len(taken)
        lost, self.lost = self.lost, 0
        return taken, lost

    def sleep(self) -> None:
        """Whoever takes events is done, and is to be woken with the next."""
        self._is_awake = False

    def lose(self, count: int) -> None:
        """Count events that nobody can make a record of."""
        self.lost += count
        self._on_lost(count)

    def _drop_oldest(self) -> None:
        dropped = 0
        while len(self._events) > MAX_EVENTS or (self._held > MAX_HELD and len(self._events) > 1):
            self._held -= _weight(self._events.popleft())
            dropped += 1
        self.gone += dropped
        if dropped:
            self.lose(dropped)


def _weight(event: AuditEvent) -> int:
    if not isinstance(event, tuple):
        return event.weight
    held = event[_ARGUMENTS]
    return 0 if held is None else len(held)


def pack_arguments(arguments: bytes | Mapping[str, Any] | None) -> tuple[bytes | None, int]:
    """Arguments as they wait: JSON, and how long it is; of a very large one the beginning."""
    if arguments is None:
        return None, 0
    text = arguments if isinstance(arguments, bytes) else exactjson.dump(arguments)
    return (text if len(text) <= MAX_ARGUMENTS else text[:DIGEST_BYTES]), len(text)
