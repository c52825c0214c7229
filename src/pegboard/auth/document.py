"""Documents of authorization servers whose tokens are taken: their metadata, and their keys."""

from __future__ import annotations

from pegboard.oauth.authorization_server import metadata_addresses
from pegboard.oauth.fetching import Fetcher, JsonAnswer
from pegboard.result import ToolFailure, invalid, unavailable
from pegboard.servers.errors import unusable_answer
from pegboard.servers.http.client import WrongStatus


async def fetch_document(url: str, issuer: str, *, is_configured: bool = False) -> JsonAnswer:
    """The JSON object at an address of an issuer; a `ToolFailure` says why there is none.

    An address that is not of the config is one that the issuer leads to.
    """
    label = f"the issuer {issuer}"
    answer = await Fetcher(issuer, named=(issuer, *([url] if is_configured else []))).get_json(url)
    if answer.status != 200:
        raise WrongStatus(label, answer.status, answer.headers)
    if answer.problem:
        raise unusable_answer(label, answer.problem)
    return answer


async def find_keys_address(issuer: str) -> str:
    """Where an issuer has its keys, by its metadata: RFC 8414, then OpenID Connect."""
    last: ToolFailure = unavailable(f"the issuer {issuer} has no metadata")
    for url in metadata_addresses(issuer):
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
