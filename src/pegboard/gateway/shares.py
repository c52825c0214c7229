"""Connection limits for each address, so that one cannot use them all."""

from __future__ import annotations

import sys
from dataclasses import dataclass

_MOST_LOCAL, _MOST_REMOTE = 4096, 512
# Where the system does not tell how many files a process may have open.
_FILES = 1024


@dataclass(frozen=True, slots=True)
class Shares:
    """The connections that all of this machine may have, and those of one address elsewhere."""

    local: int
    remote: int

    @classmethod
    def of(cls, files: int) -> Shares:
        """The shares where so many files may be open; the servers and the storage need some of them."""
        return cls(min(_MOST_LOCAL, files * 3 // 4), min(_MOST_REMOTE, files // 8))

    def of_holder(self, holder: str) -> int:
        """How many connections a holder of a share may have."""
        return self.remote if holder else self.local


def files_limit() -> int:
    """How many files this process may have open."""
    if sys.platform == "win32":
        return _FILES
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
