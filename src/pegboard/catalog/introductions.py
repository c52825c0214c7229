"""What servers said of themselves: their capabilities, and their instructions as they are served."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.catalog.reviews import Reviews, version_of
from pegboard.catalog.tool_source import Introduction
from pegboard.config import ServerSpec
from pegboard.storage import CatalogRecord


class Introductions:
    """By server. Instructions are words for people and models, which become part of longer ones."""

    def __init__(self, reviews: Reviews) -> None:
        self._reviews = reviews
        self.instructions: dict[str, str] = {}
        self.capabilities: dict[str, Mapping[str, Any]] = {}
        # Instructions as servers sent them, with the version that they were of.
        self._said: dict[str, tuple[str | None, str]] = {}

    async def record(self, spec: ServerSpec, said: Introduction | CatalogRecord) -> None:
        """A server said this, now or in an earlier run."""
        self.capabilities[spec.name] = said.capabilities
        self._said[spec.name] = said.instructions, version_of(said.server_info)
        await self.serve(spec)

    async def serve(self, spec: ServerSpec) -> None:
        """Take over instructions as they are to be served now."""
        said, version = self._said.get(spec.name, (None, ""))
        if text := await self._reviews.review_instructions(spec, said, version):
            self.instructions[spec.name] = text
        else:
            self.instructions.pop(spec.name, None)

    def forget(self, name: str) -> None:
        """A server was taken out of the config."""
        for known in (self.instructions, self.capabilities, self._said):
            known.pop(name, None)
