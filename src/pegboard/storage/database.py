"""A database as the stores see it: pieces of work on a connection, each one transaction.

SQL is written once, with `?` for each value, in what SQLite 3.38 and PostgreSQL both speak: `ON CONFLICT`, `RETURNING`,
common table expressions, window functions. Where they differ:

- SQLite's `LIKE` ignores the case of ASCII letters, PostgreSQL's does not: say `lower(x) LIKE ?`.
- PostgreSQL wants to know a value's type where nothing tells it: `CAST(? AS TEXT) IS NULL`.
- PostgreSQL's operators that contain a `?` have function names, which are to be used.
- Whatever else differs asks `connection.dialect`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from pegboard.result import ToolErrorCode, ToolFailure

Dialect: TypeAlias = Literal["sqlite", "postgres"]
Value: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = tuple[Any, ...]
T = TypeVar("T")
# Seconds that a piece of work waits for others to be done with the database.
PATIENCE = 10.0
_REASON = 200


class StorageError(ToolFailure):
    """The storage cannot be used; its text says where, why and, where that is known, what to do. It holds no secret.

    The text is for the log and the command line. An answer (`error`) may go to another machine and does not say where;
    the reason alone is one short line, and does not say it either.
    """

    def __init__(self, problem: str, advice: str = "", *, reason: str = "", is_busy: bool = False) -> None:
        self.problem = problem
        self.advice = advice
        self.reason = (reason or problem).partition("\n")[0][:_REASON]
        answer = f"the storage cannot be used: {self.reason}" if reason else self.reason
        super().__init__(ToolErrorCode.UNAVAILABLE, _with_advice(answer, advice), retryable=True)
        self.args = (_with_advice(problem, advice),)
        # Others had it for too long.
        self.is_busy = is_busy


def _with_advice(problem: str, advice: str) -> str:
    return f"{problem}: {advice}" if advice else problem


class DatabaseConnection(Protocol):
    """A transaction under way. It belongs to the thread that does the work, and only until the work is done.

    Texts come back as they were given, save what no database can keep: see `pegboard.storage.text`.
    """

    @property
    def dialect(self) -> Dialect:
        """Which database this is."""
        ...

    def rows(self, sql: str, *params: Value) -> list[Row]:
        """Every row of a query, or of a statement's `RETURNING`."""
        ...

    def row(self, sql: str, *params: Value) -> Row | None:
        """The first row, if there is one."""
        ...

    def execute(self, sql: str, *params: Value) -> int:
        """Change something; how many rows it was."""
        ...

    def execute_clean(self, sql: str, params: Sequence[Value]) -> None:
        """Change something with values that somebody has looked through for what cannot be kept (`storable`)."""
        ...

    def execute_many(self, sql: str, params: Sequence[Sequence[Value]]) -> None:
        """The same statement for each of these."""
        ...


class Database(Protocol):
    """Does work in threads of its own, so that nothing else waits for a disk or a network."""

    @property
    def name(self) -> str:
        """Where it is, as it may be shown: without a password."""
        ...

    async def open(self) -> None:
        """Be ready, with every migration applied; `StorageError` if that cannot be."""
        ...

    async def close(self) -> None:
        """Finish what is under way and let go of it."""
        ...

    async def read(self, work: Callable[[DatabaseConnection], T]) -> T:
        """What this work finds. It sees one moment of the database, and cannot change anything."""
        ...

    async def empty_log(self) -> None:
        """Leave nothing of what was deleted in a log beside the database, if there is one."""
        ...

    async def write(self, work: Callable[[DatabaseConnection], T], patience: float = PATIENCE) -> T:
        """What this work gives, with all it changed, or an exception and nothing changed.

        For its turn it waits so many seconds at most, from now.
        What it reads stays true until it is done, whoever else writes. Where others came first it is done again
        from the start, so it must change nothing but the database. Its own exceptions come out as they are.
        """
        ...
