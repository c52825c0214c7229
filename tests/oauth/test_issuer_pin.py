"""Credentials of the config go to the authorization server that was given them first, whoever asks."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from oauth.authority import Authority, open_authority
from oauth.grant_stage import KEY, REDIRECT, make_spec, open_desk, protected_toy, refused, sign_in, usable
from oauth.test_sign_in import move
from pegboard.config import ServerSpec
from pegboard.result import ToolFailure
from servers.toy_http import HttpToy

pytestmark = pytest.mark.anyio
CLIENT = {"client_id": "desk", "client_secret": "a-secret-of-the-config"}
REFUSAL = r"another authorization server now.*not sent there.*set oauth\.issuer"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for all that is sealed."""
    monkeypatch.setenv("PEGBOARD_SECRET_KEY", KEY)


@dataclass
class Move:
    """A server that can name another authorization server than before."""

    server: HttpToy
    after: HttpToy
    first: Authority
    second: Authority

    def spec(self, **oauth: Any) -> ServerSpec:
        return make_spec(self.server.url, **CLIENT, **oauth)

    def happen(self) -> None:
        move(self.server, self.after)


@pytest.fixture
def moving() -> Generator[Move]:
    """With the first of two, both of which know the client."""
    with (
        open_authority() as first,
        open_authority() as second,
        protected_toy(first.url) as server,
        protected_toy(second.url) as after,
    ):
        for authority in (first, second):
            authority.clients["desk"] = [REDIRECT]
        yield Move(server, after, first, second)


@pytest.mark.scenario("grants: Credentials of the config go to their first authorization server alone")
async def test_the_next_user_gives_them_to_nobody_else(moving: Move, tmp_path: Path) -> None:
    """Not even after everybody has signed out, nor for somebody who names the client; until the config names it."""
    spec = moving.spec(per="user")
    async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", spec) as desk:
        await sign_in(desk, principal="jwt:alice")
        await sign_in(desk, principal="jwt:bob")
        await desk.oauth.logout("notes", "jwt:alice")
        await desk.oauth.logout("notes", "jwt:bob")
        moving.happen()
        for client_id in (None, "desk"):
            with pytest.raises(ToolFailure, match=REFUSAL):
                await desk.oauth.sign_ins.begin(spec, "jwt:carol", redirect_uri=REDIRECT, client_id=client_id)
        assert moving.second.asked.keys() == {"metadata"}
        desk.specs["notes"] = moving.spec(per="user", issuer=moving.second.url)
        await sign_in(desk, principal="jwt:carol")
        assert usable(await desk.kept(principal="jwt:carol")).issuer == moving.second.url


@pytest.mark.scenario("grants: Credentials of the config go to their first authorization server alone")
async def test_a_machine_gives_them_to_nobody_else(moving: Move, tmp_path: Path) -> None:
    """Nor does a gateway that was started since, whose server has the same address and another name."""
    place, spec = f"sqlite:{tmp_path / 'pegboard.db'}", moving.spec(flow="client_credentials")
    async with open_desk(place, spec) as desk:
        assert await desk.token().renew(refused(scope="mcp"), None)
        await desk.oauth.logout("notes", "")
    moving.happen()
    for name in ("notes", "others"):
        async with open_desk(place, replace(spec, name=name)) as desk:
            with pytest.raises(ToolFailure, match=REFUSAL):
                await desk.token(name).renew(refused(scope="mcp"), None)
    assert moving.second.asked.keys() == {"metadata"}
    named = moving.spec(flow="client_credentials", issuer=moving.second.url)
    async with open_desk(place, named) as desk:
        assert await desk.token().renew(refused(scope="mcp"), None)


async def test_a_grant_of_another_authorization_server_is_not_renewed_with_them(moving: Move, tmp_path: Path) -> None:
    """As it may have been kept before the config had a secret for its client."""
    place = f"sqlite:{tmp_path / 'pegboard.db'}"
    public = make_spec(moving.server.url, client_id="desk", per="user")
    async with open_desk(place, public) as desk:
        await sign_in(desk, principal="jwt:alice")
        moving.happen()
        await sign_in(desk, principal="jwt:bob")
    async with open_desk(place, moving.spec(per="user")) as desk:
        tokens = [desk.token(principal=principal) for principal in ("jwt:alice", "jwt:bob")]
        for token in tokens:
            await token.prepare()
        assert await tokens[0].renew(refused(), tokens[0].header)
        with pytest.raises(ToolFailure, match=REFUSAL):
            await tokens[1].renew(refused(), tokens[1].header)
    assert "refresh_token" not in moving.second.asked
