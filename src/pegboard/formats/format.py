"""The interface of a provider format. Each format is one file with one subclass, named in the list of `formats`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from pegboard.formats.calls import RequestedCall
from pegboard.formats.conversions import Conversions
from pegboard.formats.namebook import NameBook
from pegboard.tool import RegisteredTool

Definition: TypeAlias = dict[str, Any]
Answers: TypeAlias = Sequence[tuple[RequestedCall, object]]


class ModelTools(Protocol):
    """The tools that a model can be offered now."""

    @property
    def names(self) -> NameBook:
        """What providers call them."""
        ...

    @property
    def conversions(self) -> Conversions:
        """Their schemas, converted."""
        ...

    def available(self) -> Mapping[str, RegisteredTool]:
        """All of them by their names here, in the order of their names at providers."""
        ...

    def visible(self) -> frozenset[str]:
        """Those that a model sees at once when the others are deferred: the discovery tools and the chosen ones."""
        ...

    def discovery(self) -> frozenset[str]:
        """Those that find other tools."""
        ...

    def instructions(self) -> Mapping[str, str]:
        """What each server says about itself, shortened."""
        ...


class ProviderFormat(ABC):
    """What one provider's API takes and gives. An object belongs to one board and may remember what it offered."""

    @abstractmethod
    def definitions(
        self, tools: Iterable[RegisteredTool], names: NameBook, conversions: Conversions
    ) -> list[Definition]:
        """Some tools for a request, in their order."""

    def offer(self, tools: ModelTools, *, deferred: bool) -> list[Definition]:
        """All tools for a request; with `deferred` most of them only when the model has found or loaded them."""
        visible = tools.visible() if deferred else None
        shown = [tool for name, tool in tools.available().items() if visible is None or name in visible]
        return self.definitions(shown, tools.names, tools.conversions)

    @abstractmethod
    def parse_calls(self, reply: object) -> list[RequestedCall]:
        """The calls that a model's reply asks for."""

    @abstractmethod
    def results(self, answers: Answers, tools: ModelTools, *, deferred: bool | None) -> list[dict[str, Any]]:
        """What to append to the conversation: the result of every call of a reply.

        `deferred`: whether the model was offered deferred tools; `None` for as in the last offer.
        """
