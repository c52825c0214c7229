"""Cuts: what is left out of servers' lists because they are too long."""

from __future__ import annotations


class Cuts(dict[str, dict[str, str]]):
    """Why, by server and kind of list."""

    def record(self, name: str, kind: str, cut: str | None) -> None:
        """A list was read; `None`: all of it is here."""
        if cut is not None:
            self.setdefault(name, {})[kind] = cut
        else:
            self.get(name, {}).pop(kind, None)
