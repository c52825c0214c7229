"""A walk through every screen by its address, and everything that the browser was given on the way."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Error, Response, expect

from page import Visit

# Every place of the page; a name stands for a server or a tool.
PLACES = (
    "",
    "servers",
    "servers?state=ready",
    "add?way=paste",
    "add?way=form",
    "add?way=import",
    "tools",
    "tools?order=tokens",
    "calls",
    "calls?kind=server.*",
    "calls?tab=numbers",
    "memory",
    "chats",
    "tasks",
    "clients",
    "sign-ins",
    "access",
)
TABS = ("", "?tab=offers", "?tab=config", "?tab=log", "?tab=calls")


def screens(servers: list[str], tools: list[str]) -> list[str]:
    """The addresses of all screens, those of these servers and tools among them."""
    of_servers = [f"servers/{name}{tab}" for name in servers for tab in TABS]
    return [*PLACES, *of_servers, *(f"tools/{name}" for name in tools)]


@dataclass
class Gathering:
    """What a browser was given: markup of screens, bodies of responses, and events of the stream."""

    visit: Visit
    texts: list[str] = field(default_factory=list[str])
    responses: list[Response] = field(default_factory=list[Response])
    events: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        page = self.visit.page
        page.on("response", self._note_response)
        protocol = page.context.new_cdp_session(page)
        protocol.send("Network.enable")
        protocol.on("Network.eventSourceMessageReceived", self._note_event)

    def _note_response(self, response: Response) -> None:
        self.responses.append(response)

    def _note_event(self, event: dict[str, Any]) -> None:
        self.events.append(f"{event['eventName']} {event['data']}")

    def walk(self, addresses: list[str]) -> None:
        """Go to each of these screens, and wait until it has what it shows."""
        for address in addresses:
            self.visit.open(address)
            expect(self.visit.page.get_by_text("Reading …")).to_have_count(0)
            self.texts.append(self.visit.page.content())

    def everything(self) -> str:
        """All of it as one text."""
        return "\n".join([*self.texts, *self.events, *(_body(each) for each in self.responses)])


def _body(response: Response) -> str:
    """The body of an answer; one that never ends has none, and is heard event by event."""
    if "event-stream" in response.headers.get("content-type", "") or response.status in {204, 304}:
        return response.url
    text = response.url
    # What a browser has not kept was of a document that is gone.
    with contextlib.suppress(Error):
        text += "\n" + response.text()
    return text
