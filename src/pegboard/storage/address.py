"""The address of a PostgreSQL database: what of it may be shown, and what may not."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote

from pegboard.log import Redactor
from pegboard.storage.database import StorageError

# As libpq reads it, but without the doubtful: an `@` or `/` in a password would make a host or a database of its rest.
_ADDRESS = re.compile(
    r"postgres(?:ql)?://(?:(?P<user>[^:/@]*)(?::(?P<password>[^/@]*))?@)?"
    r"(?P<hosts>[^/?@]*)(?P<database>/[^?@/]*)?(?:\?(?P<query>.*))?",
    re.DOTALL,
)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]*\]|[^:\[\]]*)(:[0-9]+)?")
_MIN_SECRET_LENGTH = 4
# How libpq and the driver say which server they tried.
_PLACE = re.compile(
    r"""connection to server (at "[^"]{0,300}"( \([^)]{0,300}\))?, port \d{1,5}|on socket "[^"]{0,300}") failed: """
    r"|- host: [^,]{0,300}, port: [^,]{0,20}, hostaddr: [^,]{0,300}?: (?=connection )"
    r"|(?<=failed to resolve host) '[^']{0,300}'"
)


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a database is and who goes there."""

    url: str = field(repr=False)
    shown: str
    _redactor: Redactor = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> PostgresAddress:
        """An address; one that cannot be read is refused without a word of it, as it may hold a password anywhere."""
        match = _ADDRESS.fullmatch(url)
        if match is None or not all(map(_HOST.fullmatch, match["hosts"].split(","))):
            raise unreadable()
        user = f"{match['user']}@" if match["user"] else ""
        shown = f"postgresql://{user}{match['hosts']}{match['database'] or ''}"
        fields = (field.partition("=") for field in (match["query"] or "").split("&"))
        secrets = {match["password"] or "", *(value for key, _, value in fields if "pass" in unquote(key))}
        secrets |= {unquote(secret) for secret in secrets}
        redactor = Redactor.of(secret for secret in secrets if len(secret) >= _MIN_SECRET_LENGTH)
        return cls(url, shown, redactor)

    def clean(self, text: str) -> str:
        """A message of the driver on one line, with nothing secret in it."""
        return self._redactor.clean(" ".join(text.split()))


def without_place(message: str) -> str:
    """A message of the driver without the server's host, port and socket."""
    return _PLACE.sub("", message)


def unreadable() -> StorageError:
    """The error of an address that cannot be read."""
    return StorageError(
        "the address of the storage cannot be read",
        "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE, with a password's @ as %40, : as %3A, / as %2F, % as %25",
    )
