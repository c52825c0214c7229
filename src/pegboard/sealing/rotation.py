"""Which keys sealed what is kept, and everything sealed anew with another key, while gateways run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pegboard.sealing.errors import SealingError, Unsealable
from pegboard.sealing.key_file import KeyFile
from pegboard.sealing.key_search import KeyChain
from pegboard.sealing.sealer import Sealer
from pegboard.sealing.secret_key import ID_SIZE
from pegboard.storage.oauth import OAuthStore, SealedRow

# Gateways go on sealing with the key before until they see the new one; they do with the next secret.
_PASSES = 10


@dataclass(frozen=True, slots=True)
class KeyUse:
    """A key, by its id, and how many secrets it sealed."""

    name: str
    secrets: int
    # It is there, and it seals what is sealed from now on.
    is_there: bool
    seals: bool


@dataclass(frozen=True, slots=True)
class Inventory:
    """All secrets that are kept: by which keys, and those that nobody can read."""

    secrets: int
    keys: tuple[KeyUse, ...]
    unreadable: tuple[SealedRow, ...]

    @property
    def without_key(self) -> tuple[SealedRow, ...]:
        """Those of them whose key is not here; whoever has it may read them."""
        missing = {use.name for use in self.keys if not use.is_there}
        return tuple(row for row in self.unreadable if row.sealed[:ID_SIZE].hex() in missing)

    @property
    def needs_reseal(self) -> bool:
        """Whether some can be read, and were sealed by another key than the one that seals now."""
        return any(use.secrets and use.is_there and not use.seals for use in self.keys)


@dataclass(frozen=True, slots=True)
class Rotation:
    """What was sealed anew, and what could not be."""

    resealed: int
    unreadable: tuple[SealedRow, ...]


def open_known_sealer(source: KeyChain) -> Sealer:
    """A sealer with the keys that are there; none is made."""
    stamp = source.stamp()
    return Sealer(source, source.load() if source.is_there else (), stamp)


async def take_inventory(sealer: Sealer | None, store: OAuthStore) -> Inventory:
    """What is kept, and by which keys; without a sealer, nothing can be read."""
    rows = await store.list_secrets()
    count = Counter(row.sealed[:ID_SIZE] for row in rows)
    known = [] if sealer is None else [key.id for key in sealer.keys]
    uses = [KeyUse(key.hex(), count[key], is_there=True, seals=number == 0) for number, key in enumerate(known)]
    uses += [KeyUse(key.hex(), count[key], is_there=False, seals=False) for key in sorted(count.keys() - set(known))]
    unreadable = [row for row in rows if sealer is None or not sealer.opens(row.sealed, row.context)]
    return Inventory(len(rows), tuple(uses), tuple(unreadable))


async def rotate_key(source: KeyChain, store: OAuthStore) -> Rotation:
    """Make another key where it is ours to make, and seal everything anew with the key that seals now.

    The key before stays readable, for gateways that have not seen the new one yet.
    """
    if isinstance(source.first, KeyFile):
        used = {row.sealed[:ID_SIZE] for row in await store.list_secrets()}
        if not source.is_there and used:
            raise SealingError(
                "what is stored was sealed with a key that this shell does not have",
                "run this with the environment of the gateway, which may have PEGBOARD_SECRET_KEY",
            )
        if not source.is_there:
            raise SealingError("there is no key yet", "one is made at the first sign-in, so there is nothing to change")
        source.first.rotate(used)
    return await _reseal_all(open_known_sealer(source), store)


async def _reseal_all(sealer: Sealer, store: OAuthStore) -> Rotation:
    resealed = 0
    unreadable: dict[SealedRow, None] = {}
    for _ in range(_PASSES):
        rows = [row for row in await store.list_secrets() if sealer.needs_reseal(row.sealed) and row not in unreadable]
        if not rows:
            break
        for row in rows:
            try:
                sealed = sealer.seal(sealer.unseal(row.sealed, row.context), row.context)
            except Unsealable:
                unreadable[row] = None
            else:
                # Whoever changed it meanwhile may have sealed it with the key before: the next pass sees that.
                resealed += await store.reseal(row, sealed)
    return Rotation(resealed, tuple(unreadable))
