"""Which core does what: the gateway has one to itself, load and servers share the others.

Left to itself, a scheduler may put all of them on one core in one measurement and spread them in the next, which
doubles or halves every number.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator
from dataclasses import dataclass


@dataclass(frozen=True)
class Cores:
    """A division of the machine's cores; empty sets leave it to the scheduler."""

    gateway: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()

    @classmethod
    def divided(cls) -> Cores:
        """One for the gateway, if there is more than one."""
        if not hasattr(os, "sched_getaffinity"):
            return cls()
        *others, gateway = sorted(os.sched_getaffinity(0))
        return cls(frozenset({gateway}), frozenset(others)) if others else cls()

    @contextlib.contextmanager
    def applied(self) -> Generator[None]:
        """This process, and those it starts from here on, keep off the gateway's core."""
        if not self.others:
            yield
            return
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.others)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)

    def leave(self, pid: int) -> None:
        """Leave a process where it was started."""

    def give_to_gateway(self, pid: int) -> None:
        """Move a process that has just been started to the gateway's core."""
        if self.gateway:
            os.sched_setaffinity(pid, self.gateway)
