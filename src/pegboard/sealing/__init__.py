"""Secrets at rest: sealed with a key that is kept elsewhere."""

from pegboard.sealing.errors import SealingError, Unsealable
from pegboard.sealing.sealer import Sealer, open_sealer

__all__ = ["Sealer", "SealingError", "Unsealable", "open_sealer"]
