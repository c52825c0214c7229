"""Sign-ins to servers as they are kept: registrations of clients, grants, and sign-ins under way. Secrets are sealed.

Leases and limits in time go by the database's own clock: the clocks of several machines differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pegboard.storage.database import Database, DatabaseConnection, Dialect, Row

# The clock, in seconds since 1970, as each database tells it.
_NOW: dict[Dialect, str] = {
    "sqlite": "((julianday('now') - 2440587.5) * 86400.0)",
    "postgres": "CAST(extract(epoch FROM clock_timestamp()) AS DOUBLE PRECISION)",
}
# Seconds for which the outcome of a sign-in is kept, for whoever waits for it.
_OUTCOME_SECONDS = 600.0

_LOAD_CLIENT = "SELECT sealed FROM oauth_clients WHERE issuer = ? AND redirect_uri = ?"
_SAVE_CLIENT = """
INSERT INTO oauth_clients (issuer, redirect_uri, sealed) VALUES (?, ?, ?)
ON CONFLICT (issuer, redirect_uri) DO UPDATE SET sealed = excluded.sealed
"""
_DELETE_CLIENT = "DELETE FROM oauth_clients WHERE issuer = ? AND redirect_uri = ?"
_GRANTS = """
SELECT server, principal, url, issuer, resource, scopes, expires_at, state, reason, version, sealed, created_at,
    updated_at FROM oauth_grants
"""
_LOAD_GRANT = f"{_GRANTS} WHERE server = ? AND principal = ?"
_LIST_GRANTS = f"{_GRANTS} ORDER BY server, principal"
_ADD_GRANT = """
INSERT INTO oauth_grants (server, principal, url, issuer, resource, scopes, expires_at, state, reason, version, sealed,
    created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
# What was renewed needs its lease no longer.
_CHANGE_GRANT = """
UPDATE oauth_grants SET url = ?, issuer = ?, resource = ?, scopes = ?, expires_at = ?, state = ?, reason = ?,
    version = ?, sealed = ?, created_at = ?, updated_at = ?, lease_by = '', lease_until = 0
WHERE server = ? AND principal = ?
"""
_GRANT_VERSION = "SELECT version FROM oauth_grants WHERE server = ? AND principal = ?"
_DELETE_GRANT = "DELETE FROM oauth_grants WHERE server = ? AND principal = ?"
_TAKE_LEASE = """
UPDATE oauth_grants SET lease_by = ?, lease_until = {now} + ?
WHERE server = ? AND principal = ? AND version = ? AND (lease_by = ? OR lease_until <= {now})
"""
_RELEASE_LEASE = """
UPDATE oauth_grants SET lease_by = '', lease_until = 0 WHERE server = ? AND principal = ? AND lease_by = ?
"""
_TAKE_LOCK = """
INSERT INTO oauth_locks (name, holder, held_until) VALUES (?, ?, {now} + ?)
ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, held_until = excluded.held_until
WHERE oauth_locks.holder = excluded.holder OR oauth_locks.held_until <= {now}
"""
_RELEASE_LOCK = "DELETE FROM oauth_locks WHERE name = ? AND holder = ?"
_FLOWS = """
SELECT flow_id, state_hash, server, principal, sealed, created_at, expires_at, outcome, is_used FROM oauth_flows
"""
_SAVE_FLOW = """
INSERT INTO oauth_flows (flow_id, state_hash, server, principal, sealed, created_at, expires_at, outcome, is_used)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (flow_id) DO UPDATE SET state_hash = excluded.state_hash, sealed = excluded.sealed,
    expires_at = excluded.expires_at, outcome = excluded.outcome, is_used = excluded.is_used
"""
_FORGET_FLOWS = f"DELETE FROM oauth_flows WHERE expires_at + {_OUTCOME_SECONDS} <= {{now}}"  # noqa: S608
_LOAD_FLOW = f"{_FLOWS} WHERE state_hash = ?"
_FLOW_OF_ID = f"{_FLOWS} WHERE flow_id = ?"
_USABLE_FLOW = f"{_FLOWS} WHERE state_hash = ? AND is_used = 0 AND outcome = '' AND expires_at > {{now}}"
# Nobody needs its secrets a second time.
_USE_FLOW = "UPDATE oauth_flows SET is_used = 1, sealed = ? WHERE flow_id = ?"
_FIND_FLOW = (
    f"{_FLOWS} WHERE server = ? AND principal = ? AND is_used = 0 AND outcome = '' AND expires_at > {{now}}"
    " ORDER BY created_at DESC, flow_id DESC LIMIT 1"
)
_OPEN_FLOWS = f"{_FLOWS} WHERE is_used = 0 AND outcome = '' AND expires_at > {{now}}"
# From its end on the outcome is kept, however long it might have taken.
_END_FLOW = (
    "UPDATE oauth_flows SET outcome = ?, sealed = ?, is_used = 1, expires_at = {now} WHERE flow_id = ? AND outcome = ''"
)
_VERSION = "SELECT version FROM oauth_version"
_COUNT_CHANGE = "UPDATE oauth_version SET version = version + 1 RETURNING version"

SealedTable: TypeAlias = Literal["oauth_clients", "oauth_grants", "oauth_flows"]
# The columns that say whose secret a row has: a secret that stands in another row is refused.
_KEY_COLUMNS: dict[SealedTable, tuple[str, ...]] = {
    "oauth_clients": ("issuer", "redirect_uri"),
    "oauth_grants": ("server", "principal"),
    "oauth_flows": ("flow_id", "state_hash", "server", "principal"),
}


def client_context(issuer: str, redirect_uri: str) -> tuple[str, ...]:
    """To what the secret of a registration is bound."""
    return "oauth_clients", issuer, redirect_uri


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRow:
    """A grant at a server: the gateway's own (`principal` is empty), or that of one principal."""

    server: str
    principal: str
    # The server's address that the grant is for.
    url: str
    issuer: str
    resource: str | None
    scopes: tuple[str, ...]
    expires_at: float | None
    # "live", or why it is not; `reason` is for people.
    state: str
    reason: str = ""
    # What the store counts: no two contents of a grant have the same, even if it was deleted meanwhile.
    version: int = 0
    sealed: bytes = field(repr=False)
    created_at: float
    updated_at: float

    @property
    def context(self) -> tuple[str, ...]:
        """To what its secret is bound."""
        return "oauth_grants", self.server, self.principal


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """A sign-in that somebody began. It is found by the SHA-256 of its state, by whichever process is called back."""

    flow_id: str
    state_hash: str
    server: str
    principal: str
    sealed: bytes = field(repr=False)
    created_at: float
    expires_at: float
    # How it ended; empty while it is under way.
    outcome: str = ""
    # Somebody took the answer: there can be no second one.
    is_used: bool = False

    @property
    def context(self) -> tuple[str, ...]:
        """To what its secret is bound."""
        return "oauth_flows", self.flow_id, self.state_hash, self.server, self.principal


@dataclass(frozen=True, slots=True)
class SealedRow:
    """A secret of any table, and where it stands."""

    table: SealedTable
    key: tuple[str, ...]
    sealed: bytes = field(repr=False)

    @property
    def context(self) -> tuple[str, ...]:
        """To what it is bound."""
        return self.table, *self.key


class OAuthStore:
    """Rows of registrations, grants and sign-ins under way. What is sealed is bytes here."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_client(self, issuer: str, redirect_uri: str) -> bytes | None:
        """What is kept of the registration at an issuer."""
        row = await self._database.read(lambda connection: connection.row(_LOAD_CLIENT, issuer, redirect_uri))
        return None if row is None else bytes(row[0])

    async def save_client(self, issuer: str, redirect_uri: str, sealed: bytes) -> None:
        """Keep a registration in place of the one before."""
        values = issuer, redirect_uri, sealed
        await self._database.write(lambda connection: connection.execute(_SAVE_CLIENT, *values))

    async def delete_client(self, issuer: str, redirect_uri: str) -> None:
        """Forget a registration."""
        await self._database.write(lambda connection: connection.execute(_DELETE_CLIENT, issuer, redirect_uri))

    async def load_grant(self, server: str, principal: str) -> GrantRow | None:
        """The grant of a principal at a server."""
        row = await self._database.read(lambda connection: connection.row(_LOAD_GRANT, server, principal))
        return None if row is None else _grant(row)

    async def list_grants(self) -> list[GrantRow]:
        """Every grant, by server and principal."""
        return [_grant(row) for row in await self._database.read(lambda connection: connection.rows(_LIST_GRANTS))]

    async def save_grant(self, row: GrantRow, *, expected_version: int | None) -> bool:
        """Keep a grant if the one that is there has this version; with `None`, whatever is there. False if it has not.

        The version of what is kept is one more than that of what was there; `row.version` does not matter.
        """

        return await self._database.write(lambda connection: _save_grant(connection, row, expected_version))

    async def finish_flow(self, flow_id: str, outcome: str, row: GrantRow) -> bool:
        """End a sign-in and keep its grant, whatever is there; false, and nothing is kept, if the sign-in has ended."""

        def write(connection: DatabaseConnection) -> bool:
            is_open = connection.execute(_at_now(connection, _END_FLOW), outcome, b"", flow_id) == 1
            return is_open and _save_grant(connection, row, None)

        return await self._database.write(write)

    async def delete_grant(self, server: str, principal: str, version: int | None = None) -> bool:
        """Forget a grant, if it has this version; false if there is none."""

        def write(connection: DatabaseConnection) -> bool:
            found = connection.row(_GRANT_VERSION, server, principal)
            if found is None or version not in {None, found[0]}:
                return False
            connection.execute(_DELETE_GRANT, server, principal)
            _count_change(connection)
            return True

        return await self._database.write(write)

    async def take_lease(self, server: str, principal: str, version: int, holder: str, seconds: float) -> bool:
        """Be the one who renews a grant, for so many seconds; false if it has another version, or somebody else is."""

        def write(connection: DatabaseConnection) -> bool:
            return (
                connection.execute(
                    _at_now(connection, _TAKE_LEASE), holder, seconds, server, principal, version, holder
                )
                == 1
            )

        return await self._database.write(write)

    async def release_lease(self, server: str, principal: str, holder: str) -> None:
        """Let others renew it; nothing happens if somebody else holds the lease by now."""
        await self._database.write(lambda connection: connection.execute(_RELEASE_LEASE, server, principal, holder))

    async def take_lock(self, name: str, holder: str, seconds: float) -> bool:
        """Be the one who does something of this name, where there is no grant to lease; false if somebody else does."""

        def write(connection: DatabaseConnection) -> bool:
            return connection.execute(_at_now(connection, _TAKE_LOCK), name, holder, seconds) == 1

        return await self._database.write(write)

    async def release_lock(self, name: str, holder: str) -> None:
        """Let others do it."""
        await self._database.write(lambda connection: connection.execute(_RELEASE_LOCK, name, holder))

    async def save_flow(self, row: FlowRow) -> None:
        """Keep a sign-in; those that ended long ago are forgotten."""
        await self._database.write(lambda connection: _save_flow(connection, row))

    async def add_flow(self, row: FlowRow) -> FlowRow:
        """Keep a sign-in unless one of the same server and principal is under way; the one that counts."""

        def write(connection: DatabaseConnection) -> FlowRow:
            found = connection.row(_at_now(connection, _FIND_FLOW), row.server, row.principal)
            if found is not None:
                return _flow(found)
            _save_flow(connection, row)
            return row

        return await self._database.write(write)

    async def load_flow(self, state_hash: str) -> FlowRow | None:
        """The sign-in with this state, however it stands."""
        row = await self._database.read(lambda connection: connection.row(_LOAD_FLOW, state_hash))
        return None if row is None else _flow(row)

    async def load_flow_by_id(self, flow_id: str) -> FlowRow | None:
        """The sign-in with this id, however it stands."""
        row = await self._database.read(lambda connection: connection.row(_FLOW_OF_ID, flow_id))
        return None if row is None else _flow(row)

    async def use_flow(self, state_hash: str) -> FlowRow | None:
        """Take the sign-in with this state, with its secrets; `None` if somebody has, or if it is over."""

        def write(connection: DatabaseConnection) -> FlowRow | None:
            row = connection.row(_at_now(connection, _USABLE_FLOW), state_hash)
            if row is None:
                return None
            connection.execute(_USE_FLOW, b"", row[0])
            return _flow(row)

        return await self._database.write(write)

    async def find_flow(self, server: str, principal: str) -> FlowRow | None:
        """The newest sign-in that waits for its answer."""

        def read(connection: DatabaseConnection) -> Row | None:
            return connection.row(_at_now(connection, _FIND_FLOW), server, principal)

        row = await self._database.read(read)
        return None if row is None else _flow(row)

    async def list_flows(self) -> list[FlowRow]:
        """Every sign-in that waits for its answer."""

        def read(connection: DatabaseConnection) -> list[Row]:
            return connection.rows(_at_now(connection, _OPEN_FLOWS))

        return [_flow(row) for row in await self._database.read(read)]

    async def end_flow(self, flow_id: str, outcome: str) -> None:
        """A sign-in ended; its secrets go, and the outcome is kept for ten minutes."""
        await self._database.write(
            lambda connection: connection.execute(_at_now(connection, _END_FLOW), outcome, b"", flow_id)
        )

    async def grants_version(self) -> int:
        """Another number after each change of grants, whoever made it."""
        row = await self._database.read(lambda connection: connection.row(_VERSION))
        assert row is not None
        return row[0]

    async def list_secrets(self) -> list[SealedRow]:
        """Every secret that is kept."""
        return await self._database.read(_list_secrets)

    async def reseal(self, row: SealedRow, sealed: bytes) -> bool:
        """Put another seal in place of one; false if somebody changed the row meanwhile. It counts as no change."""
        where = " AND ".join(f"{column} = ?" for column in _KEY_COLUMNS[row.table])
        statement = f"UPDATE {row.table} SET sealed = ? WHERE {where} AND sealed = ?"  # noqa: S608  our own names

        def write(connection: DatabaseConnection) -> bool:
            return connection.execute(statement, sealed, *row.key, row.sealed) == 1

        return await self._database.write(write)


def _at_now(connection: DatabaseConnection, statement: str) -> str:
    return statement.replace("{now}", _NOW[connection.dialect])


def _count_change(connection: DatabaseConnection) -> int:
    ((version,),) = connection.rows(_COUNT_CHANGE)
    return version


def _values(row: GrantRow, version: int) -> Sequence[str | float | int | bytes | None]:
    return (
        *(row.url, row.issuer, row.resource, " ".join(row.scopes), row.expires_at, row.state, row.reason),
        *(version, row.sealed, row.created_at, row.updated_at),
    )


def _save_grant(connection: DatabaseConnection, row: GrantRow, expected_version: int | None) -> bool:
    found = connection.row(_GRANT_VERSION, row.server, row.principal)
    if expected_version is not None and (found is None or found[0] != expected_version):
        return False
    count = _count_change(connection)
    if found is None:
        # Larger than that of any grant that was here before.
        connection.execute(_ADD_GRANT, row.server, row.principal, *_values(row, count))
    else:
        connection.execute(_CHANGE_GRANT, *_values(row, found[0] + 1), row.server, row.principal)
    return True


def _grant(row: Row) -> GrantRow:
    server, principal, url, issuer, resource, scopes, expires_at, state, reason, version, sealed, *times = row
    created_at, updated_at = times
    return GrantRow(
        server=server,
        principal=principal,
        url=url,
        issuer=issuer,
        resource=resource,
        scopes=tuple(scopes.split()),
        expires_at=expires_at,
        state=state,
        reason=reason,
        version=version,
        sealed=bytes(sealed),
        created_at=created_at,
        updated_at=updated_at,
    )


def _flow(row: Row) -> FlowRow:
    flow_id, state_hash, server, principal, sealed, created_at, expires_at, outcome, is_used = row
    return FlowRow(
        flow_id=flow_id,
        state_hash=state_hash,
        server=server,
        principal=principal,
        sealed=bytes(sealed),
        created_at=created_at,
        expires_at=expires_at,
        outcome=outcome,
        is_used=bool(is_used),
    )


def _save_flow(connection: DatabaseConnection, row: FlowRow) -> None:
    connection.execute(_at_now(connection, _FORGET_FLOWS))
    connection.execute(
        _SAVE_FLOW,
        *(row.flow_id, row.state_hash, row.server, row.principal, row.sealed),
        *(row.created_at, row.expires_at, row.outcome, int(row.is_used)),
    )


def _list_secrets(connection: DatabaseConnection) -> list[SealedRow]:
    found: list[SealedRow] = []
    for table, columns in _KEY_COLUMNS.items():
        # Secrets that were used up are empty.
        query = f"SELECT {', '.join(columns)}, sealed FROM {table} WHERE length(sealed) > 0"  # noqa: S608  our own names
        found += [SealedRow(table, tuple(key), bytes(sealed)) for *key, sealed in connection.rows(query)]
    return found
