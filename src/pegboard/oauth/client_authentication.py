"""How a client says who it is at a token endpoint: not at all, by a secret, or by its key (RFC 6749, section 2.3)."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from urllib.parse import quote_plus

from pegboard.log import Redactor
from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.client_assertion import ASSERTION_TYPE, make_client_assertion
from pegboard.oauth.fetching import Fetcher, FetchFailed, JsonAnswer
from pegboard.oauth.oauth_client import OAuthClient
from pegboard.oauth.token_answer import TokenEndpointAway

# What of a request an answer may repeat, and nobody may show.
_SECRET = (
    *("code", "code_verifier", "refresh_token", "client_secret", "client_assertion", "assertion", "device_code"),
    *("subject_token", "token"),
)


@dataclass(frozen=True, slots=True)
class ClientRequest:
    """A form with the client's authentication in it."""

    fields: dict[str, str] = field(repr=False)
    headers: dict[str, str] = field(repr=False)
    client_secret: str | None = field(default=None, repr=False)

    @property
    def redactor(self) -> Redactor:
        """Takes what is secret about the request out of a text."""
        return Redactor.of([*(self.fields.get(key, "") for key in _SECRET), self.client_secret or ""])


async def authenticate(
    client: OAuthClient | None, server: AuthorizationServer, fields: dict[str, str]
) -> ClientRequest:
    """The form of a request of this client's, or of nobody's."""
    if client is None:
        return ClientRequest(fields, {})
    if client.auth_method == "client_secret_basic" and client.client_secret is not None:
        # Without `client_id` in the form: two ways at once are refused by strict servers.
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret)}"
        basic = {"authorization": "Basic " + base64.b64encode(pair.encode()).decode()}
        return ClientRequest(fields, basic, client.client_secret)
    own = {"client_id": client.client_id}
    if client.auth_method == "client_secret_post" and client.client_secret is not None:
        own["client_secret"] = client.client_secret
    elif client.auth_method == "private_key_jwt":
        assertion = await make_client_assertion(client, server)
        own |= {"client_assertion_type": ASSERTION_TYPE, "client_assertion": assertion}
    return ClientRequest({**fields, **own}, {})


async def post_as_client(
    fetcher: Fetcher, url: str, client: OAuthClient | None, server: AuthorizationServer, fields: dict[str, str]
) -> JsonAnswer:
    """The answer to a form of this client's, the words of its error clean of what was sent. Raises
    `TokenEndpointAway`."""
    request = await authenticate(client, server, fields)
    try:
        answer = await fetcher.post_form(url, request.fields, request.headers)
    except FetchFailed as exc:
        raise TokenEndpointAway(request.redactor.clean(str(exc)), retryable=exc.is_away) from None
    said = answer.members.get("error_description")
    if not isinstance(said, str):
        return answer
    members = {**answer.members, "error_description": request.redactor.clean(said)}
    return JsonAnswer(answer.status, members, answer.headers, answer.problem)
