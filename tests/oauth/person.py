"""Somebody who signs in to a server by REST, with a browser that goes wherever it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urljoin

import httpx2

REDIRECTS = 10


class SignInRefused(Exception):  # noqa: N818 - it says how a sign-in ended
    """Pegboard did not go on, for this reason."""


class Person:
    """One person and one server; `headers` say who it is."""

    def __init__(
        self, http: httpx2.AsyncClient, gateway: str, server: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self._http = http
        self._gateway = gateway
        self._server = server
        self._headers = dict(headers or {})

    async def sign_in(self, scopes: Sequence[str] = ()) -> dict[str, Any]:
        """Begin, look at every page of the way back to the gateway, and ask how it went."""
        begun = await self.begin(scopes)
        page = await self.browse(begun["url"])
        if page.status_code == 403:
            # The browser cannot show whose it is: its address is pasted where the sign-in was begun.
            await self._ask("POST", f"/{begun['flow']}", {"callback": str(page.url)})
        return await self.check_done(begun)

    async def check_done(self, begun: Mapping[str, Any]) -> dict[str, Any]:
        """How a sign-in has ended; it has to be well."""
        flow = await self._ask("GET", f"/{begun['flow']}")
        if flow["state"] != "done":
            raise SignInRefused(flow.get("reason") or f"the sign-in is {flow['state']}")
        return flow

    async def begin(self, scopes: Sequence[str] = ()) -> dict[str, Any]:
        """The address to open, and the flow."""
        return await self._ask("POST", "", {"scopes": list(scopes)} if scopes else {})

    async def sign_out(self) -> dict[str, Any]:
        """Leave, and have the grant revoked."""
        return await self._ask("DELETE", "")

    async def is_wanted(self) -> bool:
        """Whether the gateway says that the server wants a sign-in."""
        answer = await self._http.get(f"{self._gateway}/api/servers", headers=self._headers)
        rows = answer.json()["data"]["servers"]
        return any(row["name"] == self._server and row["state"] == "needs_auth" for row in rows)

    async def browse(self, url: str) -> httpx2.Response:
        """Open an address, and follow it to a page; a browser sends nothing of the gateway's credentials."""
        for _ in range(REDIRECTS):
            page = await self._http.get(url)
            if not page.has_redirect_location:
                return page
            url = urljoin(url, page.headers["location"])
        raise SignInRefused("the browser was sent around in circles")

    async def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        url = f"{self._gateway}/api/servers/{self._server}/login{path}"
        answer = await self._http.request(method, url, json=body, headers=self._headers)
        told = answer.json()
        if not answer.is_success:
            raise SignInRefused(told["error"]["message"])
        return told["data"]
