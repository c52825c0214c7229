"""What the audit was told: whether there is one, what of a call it holds, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

KeptArguments = Literal["digest", "names", "values"]
MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """The `audit` section."""

    enabled: bool = True
    # Days.
    keep: int = 90
    # About so much is kept; the oldest goes first.
    bytes: int = 256 * MEGABYTE
    arguments: KeptArguments = "digest"
    # JSON pointers of arguments whose values are never kept, by patterns of tools' names.
    redact: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # Whether a call that cannot be recorded is refused, and no answer goes out before its record is kept.
    strict: bool = False
    # A file for the same records as lines of JSON.
    file: str | None = None
