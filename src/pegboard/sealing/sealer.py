"""Seals secrets with AES-256-GCM, each bound to the row where it stands.

A sealed secret is the id of its key (8 bytes), a nonce (12) and the ciphertext with its tag. Its context, the table and
the key columns of its row, is authenticated with it: moved into another row it cannot be read.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import threading
import time
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard.log import logger
from pegboard.sealing.errors import SealingError, Unsealable
from pegboard.sealing.key_source import KeySource
from pegboard.sealing.secret_key import ID_SIZE, SecretKey

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_SIZE = 12
_TAG_SIZE = 16
# Seconds after which keys are read anew because of an id that nobody knew the last time, too.
_RETRY_SECONDS = 5.0
# Seconds that a secret waits for keys that take long to read: it may stand on the event loop.
_WAIT_SECONDS = 0.015
_LOST = "the key that sealed it is not there: bring it back, or sign in again"
_FOREIGN = "it was changed, or stands in a row that is not its own; sign in again"
_READING = "its key changed a moment ago and is being read; try again"


class Sealer:
    """Holds the keys of a source and follows their change."""

    def __init__(self, source: KeySource, keys: tuple[SecretKey, ...], stamp: Hashable) -> None:
        self._source = source
        self._stamp = stamp
        self._keys = keys
        self._ciphers: dict[bytes, AESGCM] = {}
        self._tried: dict[bytes, float] = {}
        self._reading: threading.Thread | None = None

    @property
    def place(self) -> str:
        """Where the keys are, for people."""
        return self._source.place

    @property
    def keys(self) -> tuple[SecretKey, ...]:
        """Every key that opens something; the first one seals."""
        return self._keys

    def seal(self, clear: bytes, context: Sequence[str]) -> bytes:
        """A secret that only its key opens, and only with this context."""
        self._follow()
        key, nonce = self._keys[0], os.urandom(_NONCE_SIZE)
        return key.id + nonce + self._cipher(key).encrypt(nonce, clear, _encode(context))

    def unseal(self, sealed: bytes, context: Sequence[str]) -> bytes:
        """The secret; `Unsealable` if its key is not there or it is not of this context."""
        from cryptography.exceptions import InvalidTag

        if len(sealed) < ID_SIZE + _NONCE_SIZE + _TAG_SIZE:
            raise Unsealable(f"a secret that is kept cannot be read: {_FOREIGN}")
        key = self._find(sealed[:ID_SIZE])
        nonce, rest = sealed[ID_SIZE : ID_SIZE + _NONCE_SIZE], sealed[ID_SIZE + _NONCE_SIZE :]
        try:
            return self._cipher(key).decrypt(nonce, rest, _encode(context))
        except InvalidTag:
            raise Unsealable(f"a secret that is kept cannot be read: {_FOREIGN}") from None

    def opens(self, sealed: bytes, context: Sequence[str]) -> bool:
        """Whether a key that is known now opens it, with this context; no key is looked for."""
        if self._key_of(sealed[:ID_SIZE]) is None:
            return False
        try:
            self.unseal(sealed, context)
        except Unsealable:
            return False
        return True

    def needs_reseal(self, sealed: bytes) -> bool:
        """Whether another key than the one that seals now was used."""
        return sealed[:ID_SIZE] != self._keys[0].id

    def _find(self, key_id: bytes) -> SecretKey:
        key = self._key_of(key_id)
        if key is None:
            self._follow()
            key = self._key_of(key_id)
        if key is None and time.monotonic() - self._tried.get(key_id, -_RETRY_SECONDS) >= _RETRY_SECONDS:
            self._tried[key_id] = time.monotonic()
            self._reload()
            key = self._key_of(key_id)
        if key is not None:
            return key
        is_reading = self._reading is not None and self._reading.is_alive()
        reason = _READING if is_reading else _LOST
        raise Unsealable(f"a secret that is kept cannot be read: {reason}", retryable=is_reading)

    def _key_of(self, key_id: bytes) -> SecretKey | None:
        return next((key for key in self._keys if key.id == key_id), None)

    def _follow(self) -> None:
        if self._source.stamp() != self._stamp:
            self._reload()

    def _reload(self) -> None:
        if self._source.is_quick:
            self._read()
        elif self._reading is None or not self._reading.is_alive():
            self._reading = threading.Thread(target=self._read, name="pegboard-keys", daemon=True)
            self._reading.start()
            self._reading.join(_WAIT_SECONDS)

    def _read(self) -> None:
        # Before the keys: what changes while they are read is noticed the next time.
        stamp = self._source.stamp()
        try:
            # Where the file was taken away, none is made in place of the one that we have.
            loaded = self._source.load() if self._source.is_there else ()
            # Those that are known stay: what they sealed may be all that is left of them.
            self._keys = tuple(dict.fromkeys((*loaded, *self._keys)))
        except SealingError as exc:
            logger().warning("secrets.key.unreadable", place=self._source.place, reason=exc.problem)
        self._stamp = stamp

    def _cipher(self, key: SecretKey) -> AESGCM:
        cipher = self._ciphers.get(key.id)
        if cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            cipher = self._ciphers[key.id] = AESGCM(key.key)
        return cipher


async def open_sealer(storage_setting: str, environment: Mapping[str, str], state_folder: Path) -> Sealer:
    """A sealer with the key for this storage, which is made if there is none; `SealingError` if there can be none."""
    return await asyncio.to_thread(_open, storage_setting, environment, state_folder)


def _open(storage_setting: str, environment: Mapping[str, str], state_folder: Path) -> Sealer:
    # Here, in a thread: it takes a while, and nobody needs it who never signs in.
    importlib.import_module("cryptography.hazmat.primitives.ciphers.aead")
    from pegboard.sealing.key_search import find_source

    source = find_source(storage_setting, environment, state_folder)
    stamp = source.stamp()
    return Sealer(source, source.load(), stamp)


def _encode(context: Sequence[str]) -> bytes:
    """A context as bytes, in which no two are the same."""
    parts = [part.encode("utf-8", "surrogatepass") for part in context]
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)
