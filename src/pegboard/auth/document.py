"""Documents of authorization servers: fetched within bounds of time, size and place."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from pegboard import exactjson
from pegboard.config import ServerSpec
from pegboard.config.address import url_problem
from pegboard.host_names import host_name, is_loopback_name
from pegboard.result import ToolFailure, invalid, unavailable
from pegboard.servers.errors import unusable_answer
from pegboard.servers.http.client import WrongStatus, exchange, make_client, read_start

MAX_BYTES = 256 * 1024
# For all of one document, in seconds.
TIME_LIMIT = 10.0
_HEADERS = {"accept": "application/json"}


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """What stands at an address, and what was said of it."""

    members: Mapping[str, Any]
    headers: Mapping[str, str]


def document_problem(url: str, issuer: str) -> str | None:
    """Why a document at this address is not fetched for an issuer; one elsewhere never leads to this machine."""
    if problem := url_problem(url):
        return problem
    parts, home = urlsplit(url), urlsplit(issuer)
    if parts.scheme == "https":
        return None
    is_here = all(is_loopback_name(host_name(each.hostname or "")) for each in (parts, home))
    return None if is_here else "must begin with https://"


async def fetch_document(url: str, issuer: str) -> JsonDocument:
    """The JSON object at an address of an issuer; a `ToolFailure` says why there is none."""
    label = f"the issuer {issuer}"
    if problem := document_problem(url, issuer):
        raise invalid(f"{label} names an address that {problem}")
    spec = ServerSpec(name="issuer", given_name="issuer", transport="http", url=url, connect_timeout=TIME_LIMIT)
    client = make_client(spec)
    try:
        async with asyncio.timeout(TIME_LIMIT), exchange(client, label, "GET", url, _HEADERS) as response:
            if response.status_code != 200:
                raise WrongStatus(label, response.status_code, response.headers)
            body, headers = await read_start(response, MAX_BYTES), response.headers
    except TimeoutError:
        raise unavailable(f"{label} did not answer within {TIME_LIMIT:g} s") from None
    finally:
        await client.close()
    if len(body) > MAX_BYTES:
        raise unusable_answer(label, f"it is larger than {MAX_BYTES:,} bytes")
    try:
        return JsonDocument(exactjson.parse_object(body), headers)
    except exactjson.NotJson as exc:
        raise unusable_answer(label, f"it is not JSON: {exc}") from None


async def find_keys_address(issuer: str) -> str:
    """Where an issuer has its keys, by its metadata: RFC 8414, then OpenID Connect."""
    last: ToolFailure = unavailable(f"the issuer {issuer} has no metadata")
    for url in _metadata_addresses(issuer):
        try:
            found = await fetch_document(url, issuer)
        except WrongStatus as exc:
            last = exc
            continue
        if found.members.get("issuer") != issuer:
            # Somebody else's metadata would be somebody else's keys (RFC 8414, section 3.3).
            raise invalid(f'the metadata of the issuer {issuer} names another: "issuer" must be the same, exactly')
        keys = found.members.get("jwks_uri")
        if isinstance(keys, str):
            return keys
        last = invalid(f"the metadata of the issuer {issuer} has no jwks_uri: set jwksUrl")
    raise last


def _metadata_addresses(issuer: str) -> list[str]:
    parts = urlsplit(issuer)
    origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    known = [
        f"{origin}/.well-known/oauth-authorization-server{path}",
        f"{origin}/.well-known/openid-configuration{path}",
        f"{origin}{path}/.well-known/openid-configuration",
    ]
    return list(dict.fromkeys(known))
