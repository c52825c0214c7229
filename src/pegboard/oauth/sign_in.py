"""Sign-ins: a person agrees at an authorization server, and the gateway is given a grant.

A sign-in is kept in the storage, sealed, so that any process may take its answer; there is one at a time for each
server and principal, whoever asks.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from pegboard.config import ServerSpec
from pegboard.log import REDACTED, logger
from pegboard.oauth.authorization_request import build_authorization_request
from pegboard.oauth.authorization_response import AuthorizationRefused, check_address, read_code
from pegboard.oauth.authorization_server import AuthorizationServer
from pegboard.oauth.client_choice import choose_client, hold_lock
from pegboard.oauth.device import DevicePending, authorize_device, find_device_endpoint, poll_device
from pegboard.oauth.discovery import discover
from pegboard.oauth.fetching import Fetcher, FetchFailed
from pegboard.oauth.grant import OAuthGrant
from pegboard.oauth.grants import Grants
from pegboard.oauth.issuer_addresses import base_of
from pegboard.oauth.principals import Principals
from pegboard.oauth.registration import RegistrationRefused
from pegboard.oauth.scopes import choose_scopes
from pegboard.oauth.sign_in_flow import BEGUN, DONE, FAILED, Flow, FlowSecrets, describe_flow
from pegboard.oauth.token_answer import ClientRefused, TokenAnswer, TokenRefused
from pegboard.oauth.token_request import exchange_code
from pegboard.oauth.token_source import revoke_grant
from pegboard.oauth.vault import Vault
from pegboard.result import Forbidden, ToolErrorCode, ToolFailure, invalid, unavailable
from pegboard.servers.authorization import Challenge
from pegboard.storage.oauth import FlowRow
from pegboard.task_set import TaskSet

__all__ = ["Flow", "SignIns"]

# Seconds that a person has, that finding everything out may take, and for which a sign-in that another gateway began
# is joined though its answer goes there.
_TIME_TO_AGREE = 600.0
_BEGIN_LIMIT = 55.0
_JOIN_OTHERS = 30.0
# One that is nearly over is of no use to whoever asks now.
_LEAST_LEFT = 60.0
_LOOK_EVERY = 0.3
_LONGEST_REASON = 400
_OVER = "this sign-in is over, or its answer came already: begin anew"
_REFUSALS = frozenset({401, 403})
_PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}

_NOT_LET_IN = "whoever began this sign-in is not let in any more, or is no admin any more"

# Told the server, the principal, who began it, how it went, and what to say about it.
SignInRecorder = Callable[[str, str, str, str, str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInTerms:
    """What whoever signs in asks for."""

    redirect_uri: str
    begun_by: str = ""
    scopes: tuple[str, ...] = ()
    is_device: bool = False
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)


class SignIns:
    """Begins and finishes them."""

    def __init__(
        self,
        vault: Vault,
        grants: Grants,
        specs: Callable[[], Mapping[str, ServerSpec]],
        record: SignInRecorder,
        principals: Callable[[], Principals],
        public_url: Callable[[], str],
    ) -> None:
        """Under an https `public_url` everybody can have the documents that describe us as a client."""
        self._vault = vault
        self._grants = grants
        self._specs = specs
        self._record = record
        self._principals = principals
        self._public_url = public_url
        self._tasks = TaskSet()

    async def begin(
        self,
        spec: ServerSpec,
        principal_id: str,
        *,
        redirect_uri: str,
        scopes: Sequence[str] = (),
        device: bool = False,
        client_id: str | None = None,
        client_secret: str | None = None,
    ) -> Flow:
        """Begin to sign in, or join whoever has begun; `principal_id` is who asks, for itself or for the gateway.
        `ToolFailure` says what is in the way."""
        if not spec.signs_in:
            raise invalid(f"server {spec.name} has no sign-in: it is a command, or has credentials in the config")
        principal = principal_id if spec.sign_in.per == "user" else ""
        terms = SignInTerms(
            redirect_uri=redirect_uri,
            begun_by=principal_id,
            scopes=tuple(scopes),
            is_device=device or spec.sign_in.flow == "device",
            client_id=client_id,
            client_secret=client_secret,
        )
        if not await self._is_let_in(principal_id, principal):
            raise Forbidden(f"you may not sign in to {spec.name}")
        try:
            # Whoever goes away meanwhile is not the only one who waits.
            return await asyncio.shield(self._tasks.spawn(self._join_or_begin(spec, principal, terms)))
        except TimeoutError:
            raise unavailable(f"server {spec.name}: it takes too long to find out how to sign in") from None

    async def finish(self, query: Mapping[str, str], *, principal_id: str | None, came_to: str | None = None) -> Flow:
        """The answer of an authorization server came, by a browser (nobody knows whose) or pasted by a principal
        (empty: an admin, for the gateway), and to which address or path, as far as one knows. How the sign-in ended;
        `ToolFailure` if it is the answer of none."""
        state = query.get("state", "")
        row = await self._vault.store.load_flow(_digest(state)) if state else None
        if row is None:
            raise AuthorizationRefused("this is the answer of no sign-in that was begun here: begin anew")
        if principal_id not in {None, row.principal}:
            raise Forbidden("this sign-in was begun by somebody else")
        used = await self._vault.store.use_flow(row.state_hash)
        if used is None:
            raise AuthorizationRefused(_OVER)
        # A browser that goes away must not end what can be begun only once.
        return await asyncio.shield(self._tasks.spawn(self._finish(used, dict(query), came_to)))

    async def watch(self, flow_id: str, timeout: float) -> Flow:
        """How a sign-in stands, after so many seconds at most unless it has ended before."""
        give_up = time.monotonic() + timeout
        while True:
            row = await self._vault.store.load_flow_by_id(flow_id)
            if row is None:
                raise ToolFailure(ToolErrorCode.NOT_FOUND, "there is no such sign-in", retryable=False)
            flow = await self._describe(row)
            left = give_up - time.monotonic()
            if flow.state != "waiting" or left <= 0:
                return flow
            await asyncio.sleep(min(_LOOK_EVERY, left))

    async def cancel(self, flow_id: str) -> None:
        """End a sign-in that nobody wants any more."""
        await self._vault.store.end_flow(flow_id, f"{FAILED}it was cancelled")

    async def review(self) -> None:
        """End what was begun by somebody who may not any more."""
        for row in await self._vault.store.list_flows():
            kept = await self._open(row)
            # Which JWTs are good is known to the gateway that they came to.
            if kept is None or kept.begun_by.startswith("jwt:") or await self._is_let_in(kept.begun_by, row.principal):
                continue
            await self._vault.store.end_flow(row.flow_id, f"{FAILED}{_NOT_LET_IN}")
            self._record(row.server, row.principal, kept.begun_by, FAILED, _NOT_LET_IN)

    async def close(self) -> None:
        """End what is under way here."""
        await self._tasks.close()

    async def _join_or_begin(self, spec: ServerSpec, principal: str, terms: SignInTerms) -> Flow:
        async with asyncio.timeout(_BEGIN_LIMIT), hold_lock(self._vault.store, f"sign-in {spec.name} {principal}"):
            row = await self._vault.store.find_flow(spec.name, principal)
            known = None if row is None else await self._open(row)
            if row is None or known is None or not await self._is_let_in(known.begun_by, principal):
                if row is not None:
                    await self._vault.store.end_flow(row.flow_id, f"{FAILED}another sign-in was begun")
                return await self._begin(spec, principal, terms)
            difference = _find_difference(row, known, spec, terms)
            if not difference:
                return describe_flow(row, known, time.time())
            # Before the other one ends: it goes on if there is nothing in its place.
            flow = await self._begin(spec, principal, terms)
            await self._vault.store.end_flow(
                row.flow_id, f"{FAILED}another sign-in was begun, since this one {difference}"
            )
            return replace(flow, note=f"the sign-in that was under way has been ended, since it {difference}")

    async def _begin(self, spec: ServerSpec, principal: str, terms: SignInTerms) -> Flow:
        fetcher = Fetcher.of(spec)
        challenge = self._grants.challenge_of(spec, principal) or await _ask_for_challenge(spec, fetcher)
        discovery = await discover(spec, challenge, fetcher)
        server, is_guess = discovery.authorization_server, discovery.is_guess
        if terms.is_device:
            # Before a client is registered for it.
            find_device_endpoint(server)
        is_silent = is_guess and spec.oauth is None and terms.client_id is None
        if is_silent and challenge is not None and challenge.status not in _REFUSALS:
            raise _no_sign_in(spec, challenge)
        earlier = await self._earlier_scopes(spec, principal, server, terms)
        scopes = choose_scopes(
            configured=spec.sign_in.scopes,
            challenge_scope=None if challenge is None else challenge.scope,
            resource_scopes=discovery.resource_scopes,
            server=server,
            earlier=[*earlier, *self._grants.missing_scopes(spec, principal)],
            wanted=terms.scopes,
        )
        try:
            client = await choose_client(
                self._vault,
                spec,
                server,
                redirect_uri=terms.redirect_uri,
                scopes=scopes or (),
                is_device=terms.is_device,
                public_url=self._public_url(),
                client_id=terms.client_id,
                client_secret=terms.client_secret,
            )
        except RegistrationRefused as exc:
            if not is_guess or exc.is_away or exc.oauth_error:
                raise
            raise _no_sign_in(spec, challenge) from None
        kept = FlowSecrets(
            server_url=spec.url or "",
            authorization_server=server,
            client=client,
            redirect_uri=terms.redirect_uri if terms.is_device else client.redirect_uri or terms.redirect_uri,
            resource=discovery.resource,
            scopes=scopes or (),
            begun_by=terms.begun_by,
            further_scopes=terms.scopes,
            has_own_client=terms.client_id is not None,
        )
        start = self._start_device if terms.is_device else self._start_browser
        flow = await start(spec, principal, kept)
        self._record(spec.name, principal, terms.begun_by, BEGUN, "")
        return flow

    async def _earlier_scopes(
        self, spec: ServerSpec, principal: str, server: AuthorizationServer, terms: SignInTerms
    ) -> tuple[str, ...]:
        """What was granted before is asked for again, since a new grant replaces the old one."""
        kept = await self._vault.load_grant(spec.name, principal)
        if kept is None or kept.grant is None or kept.grant.server_url != spec.url:
            return ()
        if kept.grant.issuer == server.issuer:
            return kept.grant.scopes if kept.is_live and kept.fits(spec) else ()
        settings = spec.sign_in
        is_foreign = settings.client_id is not None and settings.issuer is None and terms.client_id is None
        if is_foreign and kept.grant.client.client_id == settings.client_id:
            # A client is known to the authorization server that it was registered with, and to no other.
            raise invalid(
                f"server {spec.name} names another authorization server now: {server.issuer} instead of"
                f" {kept.grant.issuer}. If that is right, register a client there, and set oauth.issuer and clientId"
            )
        return ()

    async def _start_browser(self, spec: ServerSpec, principal: str, kept: FlowSecrets) -> Flow:
        request = build_authorization_request(
            kept.authorization_server,
            kept.client,
            redirect_uri=kept.redirect_uri,
            scopes=kept.scopes or None,
            resource=kept.resource,
            params=spec.sign_in.params,
        )
        kept = replace(kept, url=request.url, state=request.state, verifier=request.verifier)
        row = _make_row(spec, principal, request.state, _TIME_TO_AGREE)
        await self._vault.save_flow(row, kept)
        return describe_flow(row, kept, time.time())

    async def _start_device(self, spec: ServerSpec, principal: str, kept: FlowSecrets) -> Flow:
        server, client, scopes = kept.authorization_server, kept.client, kept.scopes or None
        device = await authorize_device(Fetcher.of(spec), server, client, scopes=scopes, resource=kept.resource)
        kept = replace(
            kept,
            device_code=device.device_code,
            user_code=device.user_code,
            verification_uri=device.verification_uri,
            verification_uri_complete=device.verification_uri_complete,
        )
        row = _make_row(spec, principal, secrets.token_urlsafe(32), min(device.expires_in, 2 * _TIME_TO_AGREE))
        await self._vault.save_flow(row, kept)
        self._tasks.spawn(self._end(row, kept.begun_by, self._wait_for_device(row, kept, device.interval)))
        return describe_flow(row, kept, time.time())

    async def _wait_for_device(self, row: FlowRow, kept: FlowSecrets, interval: float) -> None:
        while time.time() < row.expires_at:
            await asyncio.sleep(interval)
            now = await self._vault.store.load_flow_by_id(row.flow_id)
            if now is None or now.outcome:
                raise _Overtaken
            spec, asked_at = self._spec_of(row, kept), time.time()
            server, client, code = kept.authorization_server, kept.client, kept.device_code or ""
            try:
                answer = await poll_device(
                    Fetcher.of(spec), server, client, device_code=code, interval=interval, resource=kept.resource
                )
            except FetchFailed as exc:
                if not exc.is_away:
                    raise
                continue
            if not isinstance(answer, DevicePending):
                await self._save(spec, row, kept, answer, asked_at)
                return
            interval = answer.interval
        raise unavailable("nobody answered in time", retryable=False)

    async def _finish(self, row: FlowRow, query: Mapping[str, str], came_to: str | None) -> Flow:
        kept = await self._open(row)
        return await self._end(row, "" if kept is None else kept.begun_by, self._take_answer(row, query, came_to))

    async def _take_answer(self, row: FlowRow, query: Mapping[str, str], came_to: str | None) -> None:
        kept = await self._vault.open_flow(row)
        check_address(came_to, kept.redirect_uri)
        code = read_code(query, state=kept.state, server=kept.authorization_server)
        if not await self._is_let_in(kept.begun_by, row.principal):
            raise Forbidden(_NOT_LET_IN)
        spec, asked_at = self._spec_of(row, kept), time.time()
        try:
            answer = await exchange_code(
                Fetcher.of(spec),
                kept.authorization_server,
                kept.client,
                code=code,
                verifier=kept.verifier,
                redirect_uri=kept.redirect_uri,
                resource=kept.resource,
            )
        except TokenRefused as exc:
            if isinstance(exc, ClientRefused) and kept.client.source == "registered":
                # The next sign-in registers anew.
                await self._vault.store.delete_client(kept.client.issuer, kept.redirect_uri)
            # An error may repeat what was sent.
            raise unavailable(kept.redactor.clean(exc.error.message.replace(code, REDACTED)), retryable=False) from None
        await self._save(spec, row, kept, answer, asked_at)

    def _spec_of(self, row: FlowRow, kept: FlowSecrets) -> ServerSpec:
        spec = self._specs().get(row.server)
        if spec is None or spec.url != kept.server_url or not spec.signs_in:
            raise invalid(f"server {row.server} is another one by now: begin anew")
        return spec

    async def _save(
        self, spec: ServerSpec, row: FlowRow, kept: FlowSecrets, answer: TokenAnswer, asked_at: float
    ) -> None:
        grant = OAuthGrant.of(
            answer,
            asked_at,
            server_url=kept.server_url,
            resource=kept.resource,
            requested=kept.scopes,
            flow="device" if kept.is_device else "browser",
            client=kept.client,
            authorization_server=kept.authorization_server,
        )
        if not await self._is_let_in(kept.begun_by, row.principal):
            raise await self._give_back(spec, grant, _NOT_LET_IN)
        if not await self._vault.finish_flow(row, DONE, spec, grant):
            raise await self._give_back(spec, grant, "it was cancelled")
        if kept.client.source == "registered" and kept.client.redirect_uri is not None:
            await self._vault.note_success(kept.client)

    async def _give_back(self, spec: ServerSpec, grant: OAuthGrant, reason: str) -> ToolFailure:
        """Revoke tokens that came too late; what to say about it."""
        is_revoked = await revoke_grant(spec, grant)
        tokens = "were revoked" if is_revoked else "were thrown away, but the authorization server did not revoke them"
        return unavailable(f"{reason}: the tokens that came {tokens}", retryable=False)

    async def _is_let_in(self, begun_by: str, principal: str) -> bool:
        """Whether somebody may sign in for a principal, which they are, or for the gateway (empty)."""
        return await self._principals().may_sign_in(begun_by, for_all=not principal)

    async def _end(self, row: FlowRow, begun_by: str, work: Awaitable[None]) -> Flow:
        """Do what is left of a sign-in, and keep how it ended, whatever happens."""
        outcome = f"{FAILED}it was interrupted: begin anew"
        try:
            await work
            outcome = DONE
        except _Overtaken:
            return await self.watch(row.flow_id, 0.0)
        except ToolFailure as exc:
            outcome = f"{FAILED}{exc.error.message[:_LONGEST_REASON]}"
        except Exception as exc:
            logger().error("oauth.sign_in.failed", server=row.server, error=type(exc).__name__)
            outcome = f"{FAILED}something went wrong here ({type(exc).__name__}): begin anew"
        finally:
            with suppress(ToolFailure):
                await self._vault.store.end_flow(row.flow_id, outcome)
        self._record(row.server, row.principal, begun_by, outcome, outcome.removeprefix(FAILED))
        spec = self._specs().get(row.server)
        if outcome == DONE and spec is not None:
            await self._grants.take_over(spec, row.principal)
        return describe_flow(replace(row, outcome=outcome, is_used=True), None, time.time())

    async def _describe(self, row: FlowRow) -> Flow:
        return describe_flow(row, await self._open(row), time.time())

    async def _open(self, row: FlowRow) -> FlowSecrets | None:
        """What is kept of a sign-in, if it still is."""
        if not row.sealed:
            return None
        try:
            return await self._vault.open_flow(row)
        except (ToolFailure, ValueError, KeyError, TypeError):
            return None


class _Overtaken(Exception):  # noqa: N818  it names what happened to a sign-in
    """Somebody else ended it."""


def _find_difference(row: FlowRow, kept: FlowSecrets, spec: ServerSpec, terms: SignInTerms) -> str:
    """Why a sign-in that is under way is not the one that is asked for; empty if it is."""
    now = time.time()
    if kept.server_url != spec.url:
        return "was for another address of the server"
    if kept.is_device != terms.is_device:
        return "was with a device code" if kept.is_device else "was in a browser"
    if difference := _find_scope_difference(kept, terms):
        return difference
    if not _is_same_client(kept, spec, terms):
        return "was by another client"
    if row.expires_at - now < _LEAST_LEFT:
        return "had little time left"
    # Whoever begins at the same moment elsewhere gets the same; later on, whoever listened there may be gone.
    base = base_of(kept.redirect_uri, kept.authorization_server.issuer)
    is_joined = kept.is_device or base == terms.redirect_uri or now - row.created_at < _JOIN_OTHERS
    return "" if is_joined else "ends at another gateway"


def _find_scope_difference(kept: FlowSecrets, terms: SignInTerms) -> str:
    if not set(terms.scopes) <= set(kept.scopes):
        return "did not ask for all of these scopes"
    return "" if set(kept.further_scopes) <= set(terms.scopes) else "asked for further scopes"


def _is_same_client(kept: FlowSecrets, spec: ServerSpec, terms: SignInTerms) -> bool:
    known = kept.client.client_id, kept.client.client_secret
    if terms.client_id is not None:
        return known == (terms.client_id, terms.client_secret)
    # Whoever names none wants that of the config, or one that is found out: nobody else's.
    return not kept.has_own_client or known == (spec.sign_in.client_id, spec.sign_in.client_secret)


async def _ask_for_challenge(spec: ServerSpec, fetcher: Fetcher) -> Challenge | None:
    """What the server says to a request without credentials; nobody has asked it yet."""
    accept = {"accept": "application/json, text/event-stream"}
    try:
        answer = await fetcher.post_json(spec.url or "", _PING, {**spec.headers, **accept})
    except FetchFailed:
        return None
    return Challenge.of(answer.status, answer.headers if answer.status in _REFUSALS else {})


def _no_sign_in(spec: ServerSpec, challenge: Challenge | None) -> ToolFailure:
    """What is said of a server that has no sign-in as far as one can find out."""
    status = 401 if challenge is None else challenge.status
    if status in _REFUSALS:
        said = f"{spec.name} wants credentials (HTTP {status}), and says nothing of a sign-in"
        return invalid(f'{said}: set "headers" with an Authorization in its config')
    if status == 404:
        return invalid(f"{spec.name} says nothing of a sign-in, and answers HTTP 404: is its address right?")
    return invalid(f"{spec.name} wants no sign-in: it works without one")


def _make_row(spec: ServerSpec, principal: str, state: str, seconds: float) -> FlowRow:
    now = time.time()
    return FlowRow(
        flow_id=secrets.token_hex(8),
        state_hash=_digest(state),
        server=spec.name,
        principal=principal,
        sealed=b"",
        created_at=now,
        expires_at=now + seconds,
    )


def _digest(state: str) -> str:
    return hashlib.sha256(state.encode("utf-8", "surrogatepass")).hexdigest()
