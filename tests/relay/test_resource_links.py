"""Links of an answer: named so that they lead clients to where the resource can be read."""

from __future__ import annotations

from typing import Any

import pytest

from pegboard.catalog.resources import ResourceCatalog
from pegboard.catalog.stock import ServerOffer
from pegboard.pace import Pace
from pegboard.relay import resource_links as module
from pegboard.relay.resource_links import Links

pytestmark = pytest.mark.anyio


def link(uri: str) -> dict[str, Any]:
    return {"type": "resource_link", "name": "x", "uri": uri}


async def library() -> ResourceCatalog:
    built = ResourceCatalog(order=lambda: ("git", "docs"))
    await built.put("git", ServerOffer(resources=[{"name": "x", "uri": "x://1"}]))
    return built


async def rename(built: ResourceCatalog, server: str, result: dict[str, Any]) -> dict[str, Any]:
    return await Pace().outcome(Links(built, server, "").rename(result))


async def test_an_answer_in_which_nothing_has_another_name_stays_the_same_object() -> None:
    """Nothing is copied, whatever stands in it."""
    result = {"content": [link("y://1"), {"type": "text"}, None, 5], "messages": [{"content": link("y://2")}]}
    assert await rename(await library(), "docs", result) is result


async def test_a_link_to_what_another_server_has_leads_to_the_one_that_gave_it() -> None:
    """In content, in messages and in what is read, as a link or with the resource inside."""
    inside = {"type": "resource", "resource": {"uri": "x://1", "text": "t"}}
    result = {"content": [link("x://1"), link("y://1"), inside], "messages": [{"role": "user", "content": inside}]}
    named = await rename(await library(), "docs", result)
    alias = "pegboard://docs/x://1"
    renamed = {"type": "resource", "resource": {"uri": alias, "text": "t"}}
    assert named["content"] == [link(alias), link("y://1"), renamed]
    assert named["messages"] == [{"role": "user", "content": renamed}]
    assert result["content"][0] == link("x://1")


async def test_beyond_a_number_of_links_nobody_looks_whose_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """They have the name that leads to the giver in any case, and are not kept in mind."""
    monkeypatch.setattr(module, "MAX_LINKS", 2)
    built = await library()
    named = await rename(built, "docs", {"content": [link(f"y://{number}") for number in range(4)]})
    assert [each["uri"] for each in named["content"]] == [
        *("y://0", "y://1"),
        *("pegboard://docs/y://2", "pegboard://docs/y://3"),
    ]
    assert await Pace().outcome(built.find_owner("y://2")) is None
    assert await Pace().outcome(built.find_owner("pegboard://docs/y://2")) == ("docs", "y://2")
