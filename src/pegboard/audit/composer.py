"""The composer: makes records of events, and links them into the process's chain. Runs in the audit's own thread."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from ipaddress import ip_network

from pegboard.audit.arguments import ArgumentsDigest, show_arguments
from pegboard.audit.chain import ChainHead
from pegboard.audit.event import LONGEST_DETAIL, LONGEST_TEXT, AuditEvent, CallEvent, NoteEvent
from pegboard.audit.record import AuditRecord, AuditRow, canonical, day_of, end_of_day, record_id
from pegboard.audit.redaction import Redaction
from pegboard.clients.client import Client
from pegboard.clients.endpoint import Endpoint
from pegboard.config.audit_settings import MEGABYTE, AuditSettings
from pegboard.log import logger
from pegboard.storage.text import storable_text

_PROCESS_BYTES = 5
# A chain is at most so large a part of all that is kept, and not larger than this: it goes at once.
_PARTS = 16
_MOST_BYTES = 8 * MEGABYTE
LOST = "audit.lost"


@dataclass(frozen=True, slots=True)
class AuditBatch:
    """Records that are kept together: each with its hash, and where the chains stand behind them."""

    rows: tuple[tuple[AuditRow, str], ...]
    heads: tuple[ChainHead, ...]
    # How many events nothing could be made of.
    unmade: int = 0

    def records(self) -> list[AuditRecord]:
        """The same as whoever reads them has them."""
        return [AuditRecord(*row) for row, _ in self.rows]  # type: ignore[arg-type]


class Composer:
    """Makes the records of one process, in the order of its events."""

    def __init__(self, key: bytes) -> None:
        self.process = secrets.token_hex(_PROCESS_BYTES)
        self._chain = ChainHead(self.process, 0, "")
        self._count = 0
        self._last = 0
        self._digest = ArgumentsDigest(key)
        # Of the batch that is made: no client is kept for its sake.
        self._texts: dict[tuple[Client, Endpoint], tuple[str, str, str, str, str, str]] = {}
        self._redaction = Redaction({})
        self._redaction_of: AuditSettings | None = None

    @property
    def head(self) -> ChainHead:
        """Where its chain stands."""
        return self._chain

    def compose(self, events: Sequence[AuditEvent], lost: int, settings: AuditSettings) -> AuditBatch:
        """The records of these events, with one about those that were lost before them."""
        if settings is not self._redaction_of:
            self._redaction, self._redaction_of = Redaction(settings.redact), settings
        before = [NoteEvent(_first_moment(events), LOST, detail=str(lost))] if lost else []
        rows: list[tuple[AuditRow, str]] = []
        heads: list[ChainHead] = []
        waiting: list[tuple[AuditRow, bytes]] = []
        unmade = 0

        def link() -> None:
            self._chain, hashes = self._chain.extend(waiting)
            rows.extend(zip([row for row, _ in waiting], hashes, strict=True))
            if waiting:
                heads.append(self._chain)
            waiting.clear()

        day_ends = end_of_day(self._chain.day)
        is_full = self._chain.bytes > min(settings.bytes // _PARTS, _MOST_BYTES)
        for event in (*before, *events):
            at = event[0] if isinstance(event, tuple) else event.at
            # A clock may be set back; ids are in the order of events all the same.
            at = max(at, self._last)
            self._last = at
            if is_full or at >= day_ends:
                link()
                self._chain = self._chain.start_next(day := day_of(at))
                is_full, day_ends = False, end_of_day(day)
            number = self._chain.records + len(waiting) + 1
            if (made := self._make(event, at, number, settings)) is None:
                unmade += 1
            else:
                waiting.append(made)
        link()
        self._texts.clear()
        return AuditBatch(tuple(rows), tuple(heads), unmade)

    def _make(self, event: AuditEvent, at: int, number: int, settings: AuditSettings) -> tuple[AuditRow, bytes] | None:
        """The fields of a record, and what its hash is made of. What cannot be written is left out of it, so that
        whatever somebody calls with costs nobody else their records."""
        self._count += 1
        identity = record_id(at, self._count, self.process)
        for kept in (settings, None):
            try:
                row = (
                    self._call(event, identity, at, number, kept)
                    if isinstance(event, tuple)
                    else self._note(event, identity, at, number)
                )
                return row, canonical(row)
            except Exception:
                logger().debug("audit.record.reduced", number=number)
        return None

    def _call(self, event: CallEvent, identity: str, at: int, number: int, settings: AuditSettings | None) -> AuditRow:
        """The fields of a call's record; without settings, nothing is said of its arguments but how long they were."""
        _, client, endpoint, tool, server, outcome, seconds, text, length, result, trace, detail, kind = event
        size, digest = (length, "") if settings is None else self._digest(text, length)
        shown = ""
        if settings is not None and settings.arguments != "digest":
            shown = storable_text(show_arguments(settings.arguments, text, length, tool, self._redaction))
        principal_id, principal, name, session, board, network = self._client_texts(client, endpoint)
        return (
            identity,
            self.process,
            self._chain.chain,
            number,
            at,
            kind,
            principal_id,
            principal,
            name,
            session,
            board,
            _short(server),
            _short(tool),
            outcome,
            int(seconds * 1_000_000),
            size,
            digest,
            shown,
            result,
            "" if trace is None else trace if trace.isalnum() and trace.isascii() else _text(trace),
            client.era,
            network,
            _short(detail) if detail else "",
        )

    def _client_texts(self, client: Client, endpoint: Endpoint) -> tuple[str, str, str, str, str, str]:
        """What a record says of a client, which is the same for most calls of a batch."""
        known = self._texts.get((client, endpoint))
        if known is None:
            name = f"{client.name}/{client.version}" if client.version else client.name
            principal = endpoint.principal
            known = (
                _text(principal.id),
                _text(principal.name),
                _text(name),
                session_digest(client.session),
                _text(endpoint.board or ""),
                network_class(endpoint),
            )
            self._texts[client, endpoint] = known
        return known

    def _note(self, event: NoteEvent, identity: str, at: int, number: int) -> AuditRow:
        principal = event.principal
        return (
            identity,
            self.process,
            self._chain.chain,
            number,
            at,
            event.kind,
            "" if principal is None else _text(principal.id),
            "" if principal is None else _text(principal.name),
            _text(event.client),
            session_digest(event.session),
            "",
            _text(event.server),
            _text(event.tool),
            _text(event.outcome),
            -1,
            -1,
            "",
            "",
            -1,
            _text(event.trace),
            "",
            _text(event.network),
            _text(event.detail, LONGEST_DETAIL),
        )


@lru_cache(maxsize=4096)
def session_digest(session: str | None) -> str:
    """What tells sessions apart; nobody can go on with a session that has it."""
    return sha256(session.encode("utf-8", "replace")).hexdigest()[:12] if session else ""


def network_class(endpoint: Endpoint) -> str:
    """What kind of place a client is at."""
    if endpoint.private:
        return "pipe"
    return address_class(endpoint.network)


@lru_cache(maxsize=1024)
def address_class(network: str) -> str:
    """The kind of an address: this machine, a private network, or the internet."""
    if not network:
        return "loopback"
    try:
        return "private" if ip_network(network, strict=False).is_private else "public"
    except ValueError:
        return "unknown"


def _first_moment(events: Sequence[AuditEvent]) -> int:
    first = events[0] if events else None
    return time.time_ns() if first is None else first[0] if isinstance(first, tuple) else first.at


@lru_cache(maxsize=4096)
def _short(text: str) -> str:
    return _text(text)


def _text(text: str, most: int = LONGEST_TEXT) -> str:
    return storable_text(text if len(text) <= most else f"{text[: most - 1]}…")
