"""An authorization server cannot pass on the answer of another one as its own, though none of them says who it is."""

from __future__ import annotations

import socket
from collections.abc import Generator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from oauth.authority import open_authority
from oauth.guarded_server import GuardedServer, open_guarded
from oauth.other_servers import free_port
from oauth.signed_in import SignedIn, open_signed_in
from pegboard.oauth.issuer_addresses import issuer_key

pytestmark = pytest.mark.anyio
PUBLIC = "https://gateway.example"


class Stage:
    """Two servers with an authorization server each, which do not say who they are in their answers."""

    def __init__(self, honest: GuardedServer, evil: GuardedServer) -> None:
        self.honest, self.evil = honest, evil
        for each in (honest, evil):
            each.authority.says_iss = False

    def mix_up(self) -> None:
        """From now on the second one sends browsers to the first, as if that were asked by our client there."""
        honest = self.honest.authority
        ((client, redirects),) = honest.clients.items()

        def pass_on(query: Mapping[str, str]) -> str:
            query = {**query, "client_id": client, "redirect_uri": redirects[0]}
            return f"{honest.url}/authorize?{urlencode(query)}"

        self.evil.authority.passes_on = pass_on


@pytest.fixture
def stage() -> Generator[Stage]:
    """Both of them; nobody is registered."""
    with ExitStack() as stack:
        honest, evil = (stack.enter_context(open_authority()) for _ in range(2))
        yield Stage(*(stack.enter_context(open_guarded(each)) for each in (honest, evil)))


def entry_of(server: GuardedServer, form: str) -> dict[str, Any]:
    if form == "own port":
        return server.entry
    with socket.create_server(("127.0.0.1", 0)) as free:
        return {**server.entry, "oauth": {"callbackPort": free.getsockname()[1]}}


def asked_in(url: str) -> dict[str, str]:
    """What an authorization server is asked."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


@pytest.mark.scenario("sign-in: An answer counts at the address of whoever was asked alone")
@pytest.mark.parametrize("form", ["own port", "callbackPort"])
@pytest.mark.parametrize("way", ["browser", "pasted"])
async def test_an_answer_of_another_authorization_server_is_refused(
    tmp_path: Path, stage: Stage, form: str, way: str
) -> None:
    """The code of the honest one never reaches the other: its answer comes to the address of the honest one."""
    entry = entry_of(stage.honest, form)
    servers = {"honest": entry, "evil": {**stage.evil.entry, **({"oauth": entry["oauth"]} if "oauth" in entry else {})}}
    async with open_signed_in(tmp_path, {}) as opened:
        await opened.gateway.configure(servers)
        await opened.person("honest").sign_in()
        stage.mix_up()
        person = opened.person("evil")
        begun = await person.begin()
        await answer_with(opened, begun, way)
        assert stage.evil.authority.asked["authorization_code"] == 0
        ended = await opened.gateway.board.oauth.sign_ins.watch(begun["flow"], 0.0)
        assert (ended.state, "address of another authorization server" in ended.reason) == ("failed", True)
        # Nothing is kept of it: with an honest answer the next one works.
        stage.evil.authority.passes_on = None
        await person.sign_in()


async def answer_with(opened: SignedIn, begun: dict[str, Any], way: str) -> None:
    """Go through the pages of both authorization servers, and bring what the last one says."""
    address = begun["url"]
    for _ in range(2):
        address = (await opened.http.get(address)).headers["location"]
    if way == "browser":
        assert (await opened.http.get(address)).status_code == 400
        return
    url = f"{opened.gateway.url}/api/servers/evil/login/{begun['flow']}"
    answer = await opened.http.post(url, json={"callback": f" <{address}>\n"})
    assert answer.json()["data"]["state"] == "failed"


@pytest.mark.scenario("sign-in: An answer counts at the address of whoever was asked alone")
async def test_a_document_for_each_authorization_server(tmp_path: Path, stage: Stage) -> None:
    """Where the address of a document is the client's id, each has a document of its own, with its own redirect."""
    for each in (stage.honest, stage.evil):
        each.authority.takes_documents = True
    servers = {"honest": stage.honest.entry, "evil": stage.evil.entry}
    async with open_signed_in(tmp_path, {}) as opened:
        await opened.gateway.configure(servers, auth={"publicUrl": PUBLIC})
        for name, server in (("honest", stage.honest), ("evil", stage.evil)):
            asked = asked_in((await opened.person(name).begin())["url"])
            key = issuer_key(server.authority.url)
            assert asked["client_id"] == f"{PUBLIC}/oauth/client/{key}.json"
            assert asked["redirect_uri"] == f"{PUBLIC}/oauth/callback/{key}"
            document = (await opened.http.get(asked["client_id"].replace(PUBLIC, opened.gateway.url))).json()
            assert document["client_id"] == asked["client_id"]
            assert document["redirect_uris"] == [asked["redirect_uri"]]
        missing = await opened.http.get(f"{opened.gateway.url}/oauth/client/nobody.json")
        assert missing.status_code == 404


async def test_a_client_of_ones_own_keeps_its_address(tmp_path: Path, stage: Stage) -> None:
    """Whoever registered a client, wrote its document or set the redirect gave an address that stays as it is."""
    stage.honest.authority.takes_documents = True
    redirect = f"http://localhost:{free_port()}/my/callback"
    entries: dict[str, dict[str, str]] = {
        "configured": {"clientId": "mine"},
        "document": {"clientMetadataUrl": "https://app.example/client.json"},
        "redirect": {"redirectUri": redirect},
    }
    servers = {name: {**stage.honest.entry, "oauth": oauth} for name, oauth in entries.items()}
    async with open_signed_in(tmp_path, {}) as opened:
        await opened.gateway.configure(servers)
        asked = {name: asked_in((await opened.person(name).begin())["url"])["redirect_uri"] for name in servers}
    own = f"{opened.gateway.url}/oauth/callback"
    assert asked == {"configured": own, "document": own, "redirect": redirect}
