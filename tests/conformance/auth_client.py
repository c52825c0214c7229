"""The client that the suite's authorization scenarios start: a Pegboard in front of the suite's server, a person who
signs in where Pegboard says that somebody has to, and an MCP client of the scenario's version that calls through both.

Its last argument is the server's address. It ends with 0 once the tool was called, and with 1 where Pegboard refused;
what it was refused for is all that it prints.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent.parent))

import httpx2

from harness import RawClient, http_client, serving, write_config
from oauth.person import Person, SignInRefused
from pegboard.servers.errors import RpcError

SERVER: Final = "suite"
TOOL: Final = f"{SERVER}__test-tool"
# Pegboard itself has to stop asking before the person does.
SIGN_INS: Final = 5
SECONDS: Final = 60

# The flows in which no person takes part.
FLOWS: Final = {
    "auth/client-credentials-jwt": "client_credentials",
    "auth/client-credentials-basic": "client_credentials",
    "auth/enterprise-managed-authorization": "id_jag",
    "auth/wif-jwt-bearer": "jwt_bearer",
}
# What the suite hands to a client, and where that stands in a config.
SETTINGS: Final = {
    "issuer": "issuer",
    "client_id": "clientId",
    "client_secret": "clientSecret",
    "private_key_pem": "privateKey",
    "signing_algorithm": "algorithm",
    "idp_client_id": "idpClientId",
    "idp_id_token": "assertion",
    "idp_issuer": "idpIssuer",
    "idp_token_endpoint": "idpTokenEndpoint",
    "valid_jwt": "assertion",
}
# The one document that the suite takes for a client's.
DOCUMENTS: Final = {"auth/basic-cimd": "https://conformance-test.local/client-metadata.json"}


def oauth_settings(scenario: str, context: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody would write into `oauth` for this scenario."""
    written = {SETTINGS[name]: value for name, value in context.items() if name in SETTINGS}
    extra = {"flow": FLOWS.get(scenario), "clientMetadataUrl": DOCUMENTS.get(scenario)}
    return written | {name: value for name, value in extra.items() if value is not None}


async def try_tool(client: RawClient) -> str | None:
    """List and call as an agent does; what is in the way, or nothing."""
    listed = await client.names()
    try:
        result = await client.call(TOOL)
    except RpcError as error:
        return str(error)
    text = result["content"][0]["text"]
    if result.get("isError"):
        return text
    assert text == "test"
    return None if TOOL in listed or TOOL in await client.names() else f"{TOOL} is not listed"


async def use_gateway(gateway: str, version: str) -> None:
    """Call the tool, with as many sign-ins as Pegboard asks for."""
    async with (
        asyncio.timeout(SECONDS),
        httpx2.AsyncClient(timeout=SECONDS) as http,
        http_client(f"{gateway}/mcp", version) as client,
    ):
        person = Person(http, gateway, SERVER)
        for _ in range(SIGN_INS):
            problem = await try_tool(client)
            if problem is None:
                return
            if "pegboard login" not in problem and not await person.is_wanted():
                raise SignInRefused(problem)
            await person.sign_in()
        raise SignInRefused("it wants one sign-in after the other")


def main() -> int:
    """Run the gateway for as long as it is used."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    version = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    oauth = oauth_settings(scenario, json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}")))
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        entry = {"url": sys.argv[-1], **({"oauth": oauth} if oauth else {})}
        config = write_config(Path(folder) / "pegboard.json", {SERVER: entry})
        command = json.loads(os.environ["PEGBOARD_STARTED_BY"])
        state, own = f"{folder}/state", f"{folder}/config"
        with serving(config, command=command, HOME=folder, PEGBOARD_STATE_DIR=state, PEGBOARD_CONFIG_DIR=own) as (
            _,
            url,
        ):
            try:
                asyncio.run(use_gateway(url.removesuffix("/mcp"), version))
            except (SignInRefused, TimeoutError) as problem:
                print(str(problem) or f"nothing came of it within {SECONDS} seconds")
                return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
