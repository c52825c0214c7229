"""The desk where sign-ins to servers begin: each with an address that the authorization server can send its answer to,
which is kept open for as long as somebody waits."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from pegboard.config import ServerSpec
from pegboard.gateway.connect_links import ConnectLinks
from pegboard.gateway.listen import PortInUseError
from pegboard.gateway.oauth_callback import CALLBACK, LOOPBACK_CALLBACK, CallbackPage
from pegboard.host_names import is_loopback_name
from pegboard.lru_dict import LruDict
from pegboard.oauth.grant import KeptGrant
from pegboard.oauth.oauth import Login
from pegboard.oauth.vault import Vault, sealer_opener
from pegboard.result import Conflict, ToolFailure
from pegboard.task_set import TaskSet

if TYPE_CHECKING:
    from pegboard.board import Board
    from pegboard.gateway.callback_listener import CallbackListener
    from pegboard.oauth.sign_in_flow import Flow

# Where a gateway listens by default: what a client was registered with stays good when one runs.
_USUAL_PORT = 7420
_PROBE_LIMIT = 1.0
_WATCH = 30.0
_MOST_JOINED = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInWish:
    """What whoever signs in asks for."""

    device: bool = False
    scopes: tuple[str, ...] = ()
    client_id: str | None = None
    client_secret: str | None = None


@dataclass(slots=True)
class _OpenPort:
    listener: CallbackListener
    users: int = 0


class LoginDesk:
    """Begins sign-ins."""

    def __init__(self, board: Board, page: CallbackPage, identity: str) -> None:
        self._board = board
        self._page = page
        self._identity = identity
        # Addresses that clients show to their users.
        self.links = ConnectLinks()
        self._vault = Vault(board.storage.oauth, sealer_opener(board.settings.storage))
        self._waiting = TaskSet()
        self._ports: dict[int, _OpenPort] = {}
        # The sign-ins that each port is kept open for.
        self._held: set[tuple[int, str]] = set()
        # How many wait for each sign-in here, and those that others began, who take their answers, with when they end.
        self._watchers: Counter[str] = Counter()
        self._joined: LruDict[str, float] = LruDict(_MOST_JOINED)

    async def look_at_grant(self, login: Login) -> KeptGrant | None:
        """What is kept of a sign-in; `None` where that cannot be told now."""
        try:
            return await self._vault.load_grant(login.server, login.principal)
        except ToolFailure:
            return None

    async def begin(self, spec: ServerSpec, principal_id: str, wish: SignInWish, own_address: str | None) -> Flow:
        """Begin a sign-in, or join the one that is under way. `own_address` is the gateway's, if one listens."""
        if wish.device or spec.sign_in.flow == "device":
            return await self._ask(spec, principal_id, wish, own_address or f"http://127.0.0.1:{_USUAL_PORT}{CALLBACK}")
        redirect, port = self._open_redirect(spec, own_address)
        try:
            flow = await self._ask(spec, principal_id, wish, redirect)
            theirs = redirect_of(flow)
            # Behind our own address an issuer has a word of its own.
            if theirs is not None and theirs != redirect and not theirs.startswith(f"{redirect}/"):
                if await _is_heard(theirs):
                    self._note_joined(flow)
                else:
                    # Whoever began it is gone, and nobody would take the answer.
                    await self._board.oauth.sign_ins.cancel(flow.id)
                    flow = await self._ask(spec, principal_id, wish, redirect)
        except BaseException:
            await self._release(port)
            raise
        if port is not None and (port, flow.id) in self._held:
            # Whoever asks again is told of the same sign-in, and one is enough to look how it stands.
            await self._release(port)
        elif port is not None:
            self._held.add((port, flow.id))
            self._waiting.spawn(self._hold(port, flow))
        return flow

    async def watch(self, flow: Flow, seconds: float) -> Flow:
        """How a sign-in is, when it has ended or so much time has passed."""
        self._watchers[flow.id] += 1
        try:
            return await self._board.oauth.sign_ins.watch(flow.id, seconds)
        finally:
            self._watchers[flow.id] -= 1
            if not self._watchers[flow.id]:
                del self._watchers[flow.id]

    async def cancel(self, flow: Flow) -> bool:
        """Cancel a sign-in, if nobody waits for it but whoever cancels it; whether that is so."""
        if flow.id in self._joined or self._watchers[flow.id] > 1:
            return False
        await self._board.oauth.sign_ins.cancel(flow.id)
        return True

    async def close(self) -> None:
        """Take no more answers."""
        await self._waiting.close()
        # Whoever was to keep one open may not even have begun.
        ports, self._ports = self._ports, {}
        for port in ports.values():
            await port.listener.close()

    async def _ask(self, spec: ServerSpec, principal_id: str, wish: SignInWish, redirect: str) -> Flow:
        return await self._board.oauth.sign_ins.begin(
            spec,
            principal_id,
            redirect_uri=redirect,
            scopes=wish.scopes,
            device=wish.device,
            client_id=wish.client_id,
            client_secret=wish.client_secret,
        )

    def _open_redirect(self, spec: ServerSpec, own_address: str | None) -> tuple[str, int | None]:
        """Where the answer goes, and the port that was opened for it, if one was."""
        settings = spec.sign_in
        redirect = settings.redirect_uri
        if redirect is None and settings.callback_port is not None:
            redirect = f"http://localhost:{settings.callback_port}{LOOPBACK_CALLBACK}"
        if redirect is not None:
            parts = urlsplit(redirect)
            own_port = urlsplit(own_address).port if own_address else None
            if not is_loopback_name(parts.hostname or "") or parts.scheme != "http" or parts.port in {None, own_port}:
                return redirect, None
            return redirect, self._take_port(spec, parts.port or 80, parts.path)
        if (public := self._board.settings.auth.public_url) and own_address is not None:
            return f"{public}{CALLBACK}", None
        if own_address is not None:
            return f"{own_address}{CALLBACK}", None
        port = self._take_any_port()
        return f"http://127.0.0.1:{port}{CALLBACK}", port

    def _take_port(self, spec: ServerSpec, port: int, path: str) -> int | None:
        """Listen on a port that somebody chose; nothing is opened where another command of this config does."""
        try:
            return self._listen(port, path)
        except PortInUseError as exc:
            if exc.is_same:
                return None
            raise Conflict(f"port {port}, where the sign-in to {spec.name} ends, is taken: {exc.strerror}") from None
        except OSError as exc:
            raise Conflict(f"port {port}, where the sign-in to {spec.name} ends, is not free: {exc.strerror}") from None

    def _take_any_port(self) -> int:
        with contextlib.suppress(OSError):
            return self._listen(_USUAL_PORT, CALLBACK)
        return self._listen(0, CALLBACK)

    def _listen(self, port: int, path: str) -> int:
        from pegboard.gateway.callback_listener import CallbackListener

        if port not in self._ports:
            listener = CallbackListener(self._page, port, path, self._identity)
            port = listener.port
            self._ports[port] = _OpenPort(listener)
        self._ports[port].users += 1
        return port

    async def _hold(self, port: int, flow: Flow) -> None:
        """Keep a port open until its sign-in has ended."""
        try:
            # One that nobody knows any more has ended, too.
            with contextlib.suppress(ToolFailure):
                while flow.state == "waiting":
                    flow = await self._board.oauth.sign_ins.watch(flow.id, _WATCH)
        finally:
            self._held.discard((port, flow.id))
            await self._release(port)

    def _note_joined(self, flow: Flow) -> None:
        now = time.time()
        for flow_id in [each for each, expires_at in self._joined.items() if expires_at <= now]:
            del self._joined[flow_id]
        self._joined[flow.id] = flow.expires_at

    async def _release(self, port: int | None) -> None:
        opened = None if port is None else self._ports.get(port)
        if port is None or opened is None:
            return
        opened.users -= 1
        if opened.users == 0:
            del self._ports[port]
            await opened.listener.close()


def redirect_of(flow: Flow) -> str | None:
    """Where the answer to a sign-in goes."""
    return next(iter(parse_qs(urlsplit(flow.url).query).get("redirect_uri", ())), None) if flow.url else None


async def _is_heard(address: str) -> bool:
    """Whether somebody listens at a loopback address; of others that cannot be told."""
    parts = urlsplit(address)
    if not is_loopback_name(parts.hostname or ""):
        return True
    try:
        async with asyncio.timeout(_PROBE_LIMIT):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True
