"""An MCP server over HTTP behind an authorization server, which is another one for each user: what it lists depends on
the token."""

from __future__ import annotations

import contextlib
import json
import threading
from collections import Counter
from collections.abc import Generator
from typing import Any

from harness import LIMIT
from oauth.authority import Authority
from servers.toy import Message, Settings, Toy
from servers.toy_http import Handler, HttpToy, http_toy

METADATA = "/.well-known/oauth-protected-resource/mcp"
FEATURES = ["tools", "resources", "prompts", "completions"]


class PersonalServer:
    """One toy for each user of an authority, at one address."""

    def __init__(self, authority: Authority, entrance: HttpToy, settings: Settings) -> None:
        self.authority = authority
        self._entrance = entrance
        self._settings = settings
        self.toys: dict[str, HttpToy] = {}
        # Who asked for which list, as their tokens say.
        self.asked: Counter[tuple[str, str]] = Counter()
        # Whose lists wait, and for what.
        self._held: dict[str, threading.Event] = {}

    @property
    def entry(self) -> dict[str, Any]:
        """The server in a config."""
        return {"type": "http", "url": self._entrance.url, "oauth": {"per": "user"}}

    def add(self, user: str, **settings: Any) -> Toy:
        """What it is for one user."""
        given: dict[str, Any] = {**vars(self._settings), "name": user, **settings}
        toy = Toy(Settings(**given))
        toys = HttpToy(toy, self._entrance.manners, self._entrance.port, self._entrance.server)
        self.toys[user] = toys

        def broadcast(message: Message) -> None:
            for waiting in list(toys.standing):
                waiting.put(message)

        toy.broadcast = broadcast
        return toy

    def door(self, handler: Handler, body: bytes) -> bool:
        """Let whoever has a token in to what is theirs; whether a request is answered by that."""
        if handler.path.startswith("/.well-known"):
            document = {"resource": self._entrance.url, "authorization_servers": [self.authority.url]}
            content = json.dumps(document).encode() if handler.path == METADATA else b""
            handler.plain(200 if content else 404, content, {"content-type": "application/json"})
            return True
        family = self.authority.verify((handler.headers.get("authorization") or "").removeprefix("Bearer "))
        if family is None:
            metadata = f"http://127.0.0.1:{self._entrance.port}{METADATA}"
            handler.plain(401, b"", {"www-authenticate": f'Bearer resource_metadata="{metadata}"'})
            return True
        if body:
            method = json.loads(body).get("method")
            self.asked[family.user, method] += 1
            if method == "tools/list" and (held := self._held.get(family.user)) is not None:
                held.wait(LIMIT)
        handler.toy = self.toys[family.user]
        return False

    @contextlib.contextmanager
    def hold_tools(self, user: str) -> Generator[None]:
        """Have a user wait for the list of tools."""
        self._held[user] = threading.Event()
        try:
            yield
        finally:
            self._held.pop(user).set()

    def end_streams(self) -> None:
        """Nobody waits for a client any more."""
        for toy in self.toys.values():
            toy.end_streams()


@contextlib.contextmanager
def open_personal(authority: Authority, era: str = "both") -> Generator[PersonalServer]:
    """One that listens."""
    settings = Settings(era=era, features=FEATURES)
    with http_toy(settings) as entrance:
        personal = PersonalServer(authority, entrance, settings)
        entrance.manners.door = personal.door
        try:
            yield personal
        finally:
            personal.end_streams()
