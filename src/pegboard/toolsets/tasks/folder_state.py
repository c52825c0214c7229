"""What is in memory of one folder: its files as they were read, what is kept of its tasks, and both together."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from pegboard.toolsets.tasks.folder import Contents, Folder
from pegboard.toolsets.tasks.state import State, TaskRows
from pegboard.toolsets.tasks.table import Delta


@dataclass(slots=True)
class FolderState:
    """One folder. Any thread may ask."""

    folder: Folder
    rows: TaskRows = field(default_factory=TaskRows)
    state: State | None = None
    contents: Contents = field(default_factory=Contents)
    # What callers were told last: the numbers that they name are from there.
    told: State | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def root(self) -> str:
        return str(self.folder.root)

    def take(self, delta: Delta) -> State:
        """The state with what is new in the database and in the files; what is older than what is known is nothing."""
        with self.lock:
            if delta.version > self.rows.version:
                self.rows.take(delta)
            self.contents = self.folder.contents()
            self.state = State(self.contents, self.rows, self.state)
            return self.state

    def look(self) -> Contents:
        """The files as they are now."""
        with self.lock:
            return self.folder.contents()
