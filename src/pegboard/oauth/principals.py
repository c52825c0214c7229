"""The principals of a gateway, as far as sign-ins have to know: who may still have what they began."""

from __future__ import annotations

from typing import Protocol

from pegboard.access.principal import LOCAL, Principal


class Principals(Protocol):
    """Knows who is let in. An empty id is the gateway itself."""

    def find(self, principal_id: str) -> Principal | None:
        """Who this is now; `None` if nobody is let in as this one, or it is not known."""
        ...

    async def may_sign_in(self, principal_id: str, *, for_all: bool) -> bool:
        """Whether somebody is let in now, and is an admin if the sign-in is `for_all`."""
        ...

    async def list_removed(self, principal_ids: set[str]) -> set[str]:
        """Those of them that nobody will be let in as again."""
        ...

    def is_removed(self, principal_id: str) -> bool:
        """Whether somebody is known to be one of those."""
        ...


class LocalUserAlone:
    """The principals of a board without a gateway."""

    def find(self, principal_id: str) -> Principal | None:
        """The user of this machine."""
        return LOCAL if principal_id in {"", LOCAL.id} else None

    async def may_sign_in(self, principal_id: str, *, for_all: bool) -> bool:
        """Nobody else may: whether they are let in is for their gateway to say."""
        del for_all
        return self.find(principal_id) is not None

    async def list_removed(self, principal_ids: set[str]) -> set[str]:
        """Nobody, as far as one knows here."""
        del principal_ids
        return set()

    def is_removed(self, principal_id: str) -> bool:
        """The same of one."""
        del principal_id
        return False
