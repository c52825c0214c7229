"""What a server wants more of: other scopes for one tool, or another authorization server."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import http_client
from oauth.authority import open_authority
from oauth.guarded_server import open_guarded
from oauth.signed_in import open_signed_in

pytestmark = pytest.mark.anyio


@pytest.mark.scenario("sign-in: A tool that needs more scopes concerns itself alone")
@pytest.mark.both_paths
async def test_a_step_up_keeps_the_scopes_and_other_tools_go_on(tmp_path: Path) -> None:
    """A tool that needs more says so alone; the sign-in asks for all scopes together, and only once."""
    with open_authority() as authority, open_guarded(authority) as guarded:
        guarded.first_scope, guarded.scopes = "read", {"write": "write"}
        async with (
            open_signed_in(tmp_path, {"one": guarded.entry}) as opened,
            http_client(opened.gateway.mcp) as client,
        ):
            refused = await client.call("one__write")
            assert refused["isError"]
            assert "pegboard login one" in refused["content"][0]["text"]
            assert await client.text("one__whoami") == "alice"
            await opened.person("one").sign_in()
            assert await client.text("one__write") == await client.text("one__whoami") == "alice"
    assert [set(scopes.split()) for scopes in authority.requested] == [{"read"}, {"read", "write"}]
    assert authority.asked["refresh_token"] == 0


@pytest.mark.scenario("sign-in: A tool that needs more scopes concerns itself alone")
async def test_a_scope_that_is_never_granted_is_not_asked_for_again_and_again(tmp_path: Path) -> None:
    """Where the grant has the scope already, another sign-in is not offered."""
    with open_authority() as authority, open_guarded(authority) as guarded:
        guarded.first_scope, guarded.scopes = "read", {"write": "write"}
        async with (
            open_signed_in(tmp_path, {"one": guarded.entry}) as opened,
            http_client(opened.gateway.mcp) as client,
        ):
            assert (await client.call("one__write"))["isError"]
            await opened.person("one").sign_in()
            # It is granted by name, and the server does not take it.
            authority.families[-1].scopes = ("read",)
            refused = await client.call("one__write")
            assert refused["isError"]
            assert "pegboard login" not in refused["content"][0]["text"]
            assert await client.text("one__whoami") == "alice"


@pytest.mark.scenario("sign-in: A server may move to another authorization server")
async def test_a_server_that_moves_to_another_authorization_server_is_registered_anew(tmp_path: Path) -> None:
    """The next sign-in reads the metadata again, and shows nothing of the old registration to the new one."""
    with open_authority() as old, open_authority() as new, open_guarded(old) as guarded:
        async with (
            open_signed_in(tmp_path, {"one": guarded.entry}) as opened,
            http_client(opened.gateway.mcp) as client,
        ):
            assert await client.text("one__whoami") == "alice"
            new.user, guarded.authority = "bob", new
            for family in old.families:
                family.ended = True
            assert (await client.call("one__whoami"))["isError"]
            await opened.person("one").sign_in()
            assert await client.text("one__whoami") == "bob"
    assert old.asked["register"] == new.asked["register"] == 1
    assert not set(old.clients) & {family.client for family in new.families}
    assert new.asked["refresh_token"] == 0
