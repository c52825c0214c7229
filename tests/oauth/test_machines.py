"""Grants of machines by an assertion: got when they are needed, renewed ahead, and of their failure people hear."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from harness import LIMIT
from oauth.grant_stage import Desk, make_spec, open_desk, refused, usable
from oauth.scripted import Asked, Said, ScriptedServer, open_scripted, said
from pegboard.result import ToolFailure

pytestmark = pytest.mark.anyio

ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"
BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SETTINGS: dict[str, dict[str, str]] = {
    "jwt_bearer": {"assertion": "workload-of-the-tests"},
    "id_jag": {"assertion": "id-token-of-the-tests", "idp_client_id": "there"},
}
# What each token is asked for with, and where.
ASKED = {"jwt_bearer": [("/token", "workload-of-the-tests")], "id_jag": [("/idp/token", ""), ("/token", "jag")]}


@pytest.fixture
def script() -> Generator[ScriptedServer]:
    """An authorization server, an identity provider, and the server that wants their tokens."""
    numbers = itertools.count(1)

    def give(_: Asked) -> Said:
        return said({"access_token": f"at-{next(numbers)}", "token_type": "Bearer", "expires_in": 2})

    with open_scripted() as script:
        script.protect()
        script.answers["/token"] = give
        script.answers["/idp/token"] = said({"access_token": "jag", "issued_token_type": ID_JAG, "token_type": "N_A"})
        yield script


@pytest.fixture(params=SETTINGS)
async def desk(tmp_path: Path, script: ScriptedServer, request: pytest.FixtureRequest) -> AsyncGenerator[Desk]:
    """A gateway with that server, which nobody signs in to."""
    flow: Any = request.param
    settings = SETTINGS[flow] | ({"idp_token_endpoint": f"{script.url}/idp/token"} if flow == "id_jag" else {})
    spec = make_spec(f"{script.url}/mcp", flow=flow, client_id="me", **settings)
    async with open_desk(f"sqlite:{tmp_path / 'pegboard.db'}", spec) as desk:
        yield desk


def asked_of(script: ScriptedServer) -> list[tuple[str, str]]:
    """Every request for a token, with its assertion."""
    return [(each.path, each.form.get("assertion", "")) for each in script.asked if each.path.endswith("/token")]


@pytest.mark.scenario("grants: A machine with an assertion has tokens whenever it needs them")
async def test_a_machine_with_an_assertion_needs_nobody(desk: Desk, script: ScriptedServer) -> None:
    """The first 401 has a token fetched; while it is used it is renewed ahead, each time with the assertion."""
    token = desk.token()
    await token.prepare()
    assert (token.header, asked_of(script)) == (None, [])
    assert await token.renew(refused(), None)
    assert token.header == "Bearer at-1"
    flow = desk.specs["notes"].sign_in.flow
    assert asked_of(script) == ASKED[flow]
    first = token.version
    with anyio.fail_after(LIMIT):
        while token.version < first + 2:
            # A loaded machine may come too late; then whoever calls waits for the next one.
            if not token.is_fresh:
                await token.prepare()
            await asyncio.sleep(0.02)
    asked = asked_of(script)
    assert asked == ASKED[flow] * (len(asked) // len(ASKED[flow]))
    assert usable(await desk.kept()).flow == flow
    assert [(login.state, login.principal) for login in await desk.oauth.logins()] == [("live", "")]


@pytest.mark.scenario("grants: A machine with an assertion has tokens whenever it needs them")
async def test_an_assertion_that_is_refused_is_told(desk: Desk, script: ScriptedServer) -> None:
    """Whoever calls reads why, without the assertion; nobody is asked again before it is time, and later ones work."""
    good, secret = dict(script.answers), SETTINGS[desk.specs["notes"].sign_in.flow]["assertion"]
    first = ASKED[desk.specs["notes"].sign_in.flow][0][0]
    script.answers[first] = said({"error": "invalid_grant", "error_description": "it has expired"}, 400)
    token = desk.token()
    with pytest.raises(ToolFailure, match="it has expired") as failed:
        await token.renew(refused(), None)
    assert (failed.value.error.retryable, secret in str(failed.value)) == (True, False)
    assert len(asked_of(script)) == 1
    with pytest.raises(ToolFailure):
        await token.renew(refused(), None)
    assert len(asked_of(script)) == 1
    assert desk.metrics.oauth_refreshes == {("notes", "refused"): 1}
    script.answers.update(good)
    with anyio.fail_after(LIMIT):
        while token.header is None:
            try:
                await token.renew(refused(), None)
            except ToolFailure as exc:
                await asyncio.sleep(exc.error.retry_after)
    assert token.header == "Bearer at-1"
    assert BEARER in script.asked[-1].form["grant_type"]
