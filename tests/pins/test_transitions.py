"""No way leads from what is held to what is served but a decision: random histories of a server and of those who
decide."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pegboard.config import ServerSpec
from pegboard.config.settings import ChangePolicy
from pegboard.pins.canonical import digest_of_definition
from pegboard.pins.pins import Pins
from pegboard.storage import Storage, open_storage

SPEC = ServerSpec(name="shop", given_name="shop", command="shop")
NAMES = ("buy", "sell")
# Versions of one tool: the first three take each other's calls, the others do not.
PARAMETERS: tuple[dict[str, Any], ...] = (
    {"description": "One."},
    {"description": "Two."},
    {"description": "Three.", "annotations": {"readOnlyHint": True}},
    {"description": "Four.", "required": ["what"]},
    {"description": "Five.", "type": "integer"},
)

HINTS = ({}, {"readOnlyHint": True})

Step = tuple[Literal["say"], tuple[int | None, ...]] | tuple[Literal["accept", "reject"], tuple[str, ...]]
Step = Step | tuple[Literal["policy"], ChangePolicy] | tuple[Literal["restart"], None]

versions = st.one_of(st.none(), st.integers(0, len(PARAMETERS) - 1))
steps = st.one_of(
    st.tuples(st.just("say"), st.tuples(versions, versions)),
    st.tuples(st.sampled_from(["accept", "reject"]), st.lists(st.sampled_from(NAMES), max_size=2).map(tuple)),
    st.tuples(st.just("policy"), st.sampled_from(["tell", "hold"])),
    st.tuples(st.just("restart"), st.none()),
)


def tool(name: str, version: int) -> dict[str, Any]:
    """One version of a tool."""
    words = dict(PARAMETERS[version])
    what = {"type": words.pop("type", "string")}
    schema = {"type": "object", "properties": {"what": what}, "required": words.pop("required", [])}
    return {"name": name, "inputSchema": schema, **words}


def digest(definition: Any) -> str:
    return digest_of_definition(definition, has_hints=True)


def is_read_only(definition: Any) -> bool:
    return definition.get("annotations", {}).get("readOnlyHint", False)


@dataclass
class Model:
    """What may be served, as whoever decides understands it."""

    approved: dict[str, str]
    rejected: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def accept(self, name: str, said: str | None) -> None:
        """Something is approved, or that it is gone."""
        if said is None:
            self.approved.pop(name, None)
        else:
            self.approved[name] = said
            self.rejected.discard((name, said))


@dataclass
class History:
    """One server, and those who decide about it."""

    storage: Storage
    policy: ChangePolicy = "hold"
    said: tuple[int | None, ...] = (0, None)
    model: Model = field(default_factory=lambda: Model({}))

    async def begin(self) -> None:
        """The first sight."""
        self.pins = Pins(self.storage.pins, lambda _: self.policy)
        await self.pins.open()
        self.model = Model({each["name"]: digest(each) for each in self.tools()})
        await self.check()

    def tools(self) -> list[dict[str, Any]]:
        """What the server says now."""
        return [tool(name, version) for name, version in zip(NAMES, self.said, strict=True) if version is not None]

    async def take(self, step: Any) -> None:
        """One thing that happens."""
        kind, what = step
        if kind == "say":
            self.said = what
        elif kind == "policy":
            self.policy = what
        elif kind == "restart":
            self.pins = Pins(self.storage.pins, lambda _: self.policy)
            await self.pins.open()
        else:
            await self.decide(kind, what)
        await self.check()

    async def decide(self, kind: str, names: tuple[str, ...]) -> None:
        """Somebody decides about what differs, or about some of it."""
        said = {each["name"]: digest(each) for each in self.tools()}
        await self.pins.review(SPEC, "tool", self.tools())
        chosen = [each for each in self.pins.state(SPEC).list_changes() if each.name in names]
        await self.pins.decide(SPEC, chosen, accept=kind == "accept")
        for change in chosen:
            if kind == "accept":
                self.model.accept(change.name, said.get(change.name))
            elif change.name in said:
                self.model.rejected.add((change.name, said[change.name]))

    async def check(self) -> None:
        """Nothing is served that nobody has approved, and nothing is withheld without a word."""
        review = await self.pins.review(SPEC, "tool", self.tools())
        tools = {each["name"]: each for each in review.served}
        served = {name: digest(each) for name, each in tools.items()}
        for each in self.tools():
            name, now = each["name"], digest(each)
            before = self.model.approved.get(name)
            may_be_used = self.policy == "tell" and (name, now) not in self.model.rejected
            if now == before or may_be_used:
                assert served[name] == now
            else:
                # It may have stricter hints than what was approved.
                hints = [digest({**tools[name], "annotations": given}) for given in HINTS] if name in tools else []
                assert before in hints or name not in tools
                assert name not in tools or not is_read_only(tools[name]) or is_read_only(each)
                assert (name in served) != (name in review.withheld)
                assert served.get(name) != now
        assert served.keys() <= {each["name"] for each in self.tools()}


@pytest.mark.scenario("changes: Nothing that is held is served without a decision")
@settings(max_examples=80, suppress_health_check=[HealthCheck.too_slow])
@given(first=st.tuples(versions, versions), history=st.lists(steps, max_size=12))
# What was rejected is not served where changes are told either.
@example(first=(0, None), history=[("say", (1, None)), ("reject", ("buy",)), ("policy", "tell")])
def test_nothing_held_is_served_without_a_decision(first: tuple[int | None, ...], history: list[Any]) -> None:
    """Whatever a server says in whichever order, and whatever is decided, set and started anew in between."""

    async def live() -> None:
        with tempfile.TemporaryDirectory() as folder:
            storage = open_storage(f"sqlite:{Path(folder) / 'pins.db'}")
            await storage.open()
            try:
                shop = History(storage, said=first)
                await shop.begin()
                for step in history:
                    await shop.take(step)
            finally:
                await storage.close()

    asyncio.run(live())
