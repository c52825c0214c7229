"""A real authorization server (oidc-provider), and a browser whose user agrees to everything."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Generator
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2

from harness import LIMIT
from node import HERE, node

SECRET = "a-secret-of-the-tests"


@contextlib.contextmanager
def open_provider(lifetime: int = 600, *, path: str = "", jwk: str = "", documents: str = "") -> Generator[str]:
    """The issuer's address; its access tokens last so many seconds. `jwk` is the public key of the client `signer`,
    `documents` where the client metadata documents of https://gateway.example are."""
    command = [str(node()), str(HERE / "oidc_provider.mjs"), str(lifetime), path, jwk, documents]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


async def machine_token(issuer: str, resource: str, scope: str = "mcp") -> str:
    """An access token by client credentials."""
    asked = {"grant_type": "client_credentials", "client_id": "machine", "client_secret": SECRET}
    async with httpx2.AsyncClient(timeout=LIMIT) as http:
        answer = await http.post(f"{issuer}/token", data={**asked, "resource": resource, "scope": scope})
    assert answer.status_code == 200, answer.text
    return answer.json()["access_token"]


async def browse(url: str, *, follow_home: bool = False) -> dict[str, str]:
    """Follow an authorization URL to where it redirects to: what stands in that address. A client that listens there
    is visited, too."""
    redirect = parse_qs(urlsplit(url).query)["redirect_uri"][0]
    async with httpx2.AsyncClient(timeout=LIMIT) as http:
        while not url.startswith(redirect):
            answer = await http.get(url)
            assert answer.has_redirect_location, (url, answer.status_code, answer.text)
            url = urljoin(url, answer.headers["location"])
        if follow_home:
            await http.get(url)
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
