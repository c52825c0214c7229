"""The relay itself: one request to one server, whatever the eras of its two ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from pegboard.access.limits import Limits, RateLimited
from pegboard.audit.audit import Audit
from pegboard.audit.request_record import RequestRecord
from pegboard.catalog.discovery import Discovery
from pegboard.catalog.resources import ResourceCatalog
from pegboard.catalog.stock import CatalogEntry
from pegboard.clients.caller import Caller
from pegboard.clients.channel import OnProgress
from pegboard.clients.client import Client
from pegboard.clients.sessions import ClientSessions
from pegboard.exactjson import as_object
from pegboard.listing.view import Filter
from pegboard.log import logger
from pegboard.names import nearest, parse
from pegboard.pace import Pace
from pegboard.protocol.codes import INVALID_PARAMS, METHOD_NOT_FOUND, RESOURCE_NOT_FOUND
from pegboard.protocol.eras import forward_params
from pegboard.protocol.methods import TASK_METHODS, notification_problem, request_problem
from pegboard.relay.input_requests import fulfil, retry_after_url_elicitation, wants_input
from pegboard.relay.parked import ROUND_KEYS, ParkedCalls
from pegboard.relay.resource_links import Links, rename_contents
from pegboard.relay.routes import Routes
from pegboard.relay.session_subscriptions import SessionSubscriptions, Subscription
from pegboard.relay.subscriptions import Listener, Subscriptions
from pegboard.result import ToolFailure, unavailable
from pegboard.secret_forms import redact_text
from pegboard.servers.attribution import attribute, attribute_result
from pegboard.servers.connection_key import is_per_user, session_in
from pegboard.servers.errors import RpcError
from pegboard.servers.http.client import is_unacted
from pegboard.servers.http.refusal import AccessRefused
from pegboard.servers.message import Message, Params
from pegboard.servers.raw_call import RawCall
from pegboard.servers.requester import Requester
from pegboard.servers.server import Server
from pegboard.task_set import TaskSet

# A resource that nobody is known to have may be that of a server which has not said yet what it has. Where another one
# may be asked for it, that is waited for only for a moment.
_DISCOVERY_WAITS = (0.4, 5.0)
_SHOWN = 100
_ROOTS_CHANGED = "notifications/roots/list_changed"


class Relay:
    """Finds the server that a request belongs to, and carries both ends of the conversation."""

    def __init__(
        self,
        servers: Callable[[], Mapping[str, Server]],
        discovery: Discovery,
        library: ResourceCatalog,
        limits: Limits,
        audit: Audit,
    ) -> None:
        self._limits = limits
        self._audit = audit
        self._servers = servers
        self._discovery = discovery
        self._library = library
        self._routes = Routes()
        self.sessions = ClientSessions()
        self.parked = ParkedCalls()
        self.subscriptions = Subscriptions()
        self.session_subscriptions = SessionSubscriptions()
        self._tasks = TaskSet()

    async def close(self) -> None:
        """End whatever is under way."""
        await self._tasks.close()
        await self.parked.close()
        await self.subscriptions.close()

    async def send(
        self,
        server: Server,
        method: str,
        params: Mapping[str, Any],
        caller: Caller,
        *,
        subject: str,
        input_schema: Mapping[str, Any] | None = None,
    ) -> Message:
        """Send a request whose params are already the server's own, and give its result."""

        async def exchange(requester: Requester, on_progress: OnProgress | None, more: Mapping[str, Any]) -> Message:
            nonlocal begun
            call, begun = begun, None
            result, refused = await _resume_call(server, call, requester) if call is not None else (None, None)
            if result is None:
                result = await server.request(
                    method,
                    {**asked, **more},
                    requester=requester,
                    subject=subject,
                    session=caller.client.session,
                    on_progress=on_progress,
                    capabilities=caller.client.capabilities,
                    # Only a modern server has to be told with each request.
                    log_level=caller.effective_log_level if era == "modern" else caller.log_level,
                    input_schema=input_schema,
                    is_repetition=isinstance(refused, AccessRefused),
                )
            if era == "handshake" and wants_input(result):
                # That era has no such result: there it is a word without a meaning.
                result = {key: value for key, value in result.items() if key != "resultType"}
            return result

        self._routes.check_tasks(caller.principal_key, server.name, method, params)
        asked, begun = params, caller.started_call
        # One that is under way has its answer, or the reason why there is none, from the connection it was sent on.
        era = await self._era(server, caller) if begun is None else begun.era
        if caller.client.era == "modern" and era == "handshake":
            # What belongs to the rounds of the modern era is between us and the client.
            asked = {key: value for key, value in params.items() if key not in ROUND_KEYS}
            return await self.parked.call(
                method,
                params,
                caller,
                lambda requester, told: retry_after_url_elicitation(
                    lambda: exchange(requester, told, {}), requester, server.name
                ),
            )
        result = await exchange(caller, caller.on_progress, {})
        if wants_input(result) and caller.client.era == "handshake":
            result = await fulfil(
                result,
                lambda more: exchange(caller, caller.on_progress, more),
                caller,
                server.name,
                server.spec.timeout,
            )
        return attribute_result(result, server.name) if wants_input(result) else result

    async def name_references(self, server: str, result: Message, caller: Caller) -> Message:
        """Keep in mind what a result refers to, and name resources as clients have to."""
        self._routes.learn(caller.principal_key, server, result)
        seen = caller.client.filter
        links = Links(self._library, server, caller.principal_key, seen.knows_server, seen.holder)
        return await Pace().outcome(links.rename(result))

    async def get_prompt(self, params: Params, caller: Caller) -> Message:
        """`prompts/get`, by the name that clients use."""
        async with RequestRecord(self._audit, "prompt", caller.client) as record:
            entry = await self._prompt(params.get("name"), caller.client.filter)
            forwarded = {**forward_params(params), "name": entry.original_name}
            server, record.target = self._server(entry.server_name), entry.name
            with self._place(server, caller, record):
                result = await self.send(
                    server, "prompts/get", forwarded, caller, subject=f"prompts/get {entry.original_name}"
                )
        return await self.name_references(server.name, result, caller)

    async def read_resource(self, params: Params, caller: Caller) -> Message:
        """`resources/read`, by the URI that clients use."""
        uri = params.get("uri")
        async with RequestRecord(self._audit, "resource", caller.client) as record:
            server, own = await self._resource(uri, caller)
            forwarded, record.target = {**forward_params(params), "uri": own}, self._uri_for_record(str(uri))
            try:
                with self._place(server, caller, record):
                    result = await self.send(
                        server, "resources/read", forwarded, caller, subject=f"resources/read {own}"
                    )
            except RpcError as exc:
                # Each era has its own code for a resource that is not there.
                data = as_object(exc.data) or {}
                if exc.code == RESOURCE_NOT_FOUND or (exc.code == INVALID_PARAMS and "uri" in data):
                    raise RpcError(_not_found(caller), exc.message, {**data, "uri": uri}) from None
                raise
        if is_per_user(server.spec) and "cacheScope" in result:
            # What one has read with credentials of one's own is nobody else's.
            result = {**result, "cacheScope": "private"}
        if own != uri:
            result = rename_contents(result, own, uri)
        return await self.name_references(server.name, result, caller)

    async def complete(self, params: Params, caller: Caller) -> Message:
        """`completion/complete` for an argument of a prompt or of a resource template."""
        async with RequestRecord(self._audit, "request", caller.client, "completion/complete") as record:
            ref = as_object(params.get("ref")) or {}
            if ref.get("type") != "ref/resource":
                entry = await self._prompt(ref.get("name"), caller.client.filter)
                server, own = self._server(entry.server_name), {"name": entry.original_name}
            else:
                wanted = caller.client.filter
                sight = await self._library.see(wanted.knows_server, wanted.holder)
                template = sight.templates.get(str(ref.get("uri")))
                if template is not None and wanted.admits_resources(template.server_name):
                    server, own = self._server(template.server_name), {"uri": template.original_name}
                else:
                    server, uri = await self._resource(ref.get("uri"), caller)
                    own = {"uri": uri}
            forwarded = {**forward_params(params), "ref": {**ref, **own}}
            with self._place(server, caller, record):
                return await self.send(server, "completion/complete", forwarded, caller, subject="completion/complete")

    async def pass_on(self, method: str, params: Params, caller: Caller) -> Message:
        """A request that Pegboard does not know, to the one server it belongs to."""
        if (problem := request_problem(method)) is not None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {method[:_SHOWN]!a}; {problem}")
        async with RequestRecord(self._audit, "request", caller.client, method) as record:
            server = self._server(self._owner(method, params, caller))
            is_about_task = method in TASK_METHODS
            # To ask how far a call has come is no other call.
            with contextlib.nullcontext() if is_about_task else self._place(server, caller, record):
                record.server = server.name
                result = await self.send(server, method, forward_params(params), caller, subject=method)
        if method == "tasks/list":
            return self._routes.own_tasks(caller.principal_key, server.name, result)
        if not is_about_task:
            self._routes.learn(caller.principal_key, server.name, result)
        return result

    def _uri_for_record(self, uri: str) -> str:
        """What a record says of a resource: the URI of one that is listed. What somebody put into a template is as
        private as arguments are."""
        if uri in self._library.resources.entries or self._audit.keeps_values:
            return redact_text(uri)
        return f"{uri.partition(':')[0]}:…"

    async def relay_notification(self, method: str, params: Params, caller: Caller) -> None:
        """A notification of a client that is not about Pegboard itself."""
        if method == _ROOTS_CHANGED:
            for server in list(self._servers().values()):
                # A server that several share could not ask for them, unless a call of this client is under way.
                is_own = server.spec.instance == "session" and caller.client.session is not None
                if (
                    is_own
                    and caller.client.filter.admits_server(server.name)
                    and self._has_room(server, caller, method)
                ):
                    self._tasks.spawn(self._tell(server, caller, method, forward_params(params) or None))
            return
        if (problem := notification_problem(method)) is not None:
            # Also a request that lacks its id, or a notification of the protocol that has its meaning here.
            logger().debug("client.notification.refused", method=method[:_SHOWN], reason=problem)
            return
        try:
            server = self._server(self._owner(method, params, caller))
        except (RpcError, ToolFailure) as exc:
            logger().debug("client.notification.dropped", method=method, reason=str(exc)[:200])
            return
        if self._has_room(server, caller, method):
            await self._tell(server, caller, method, forward_params(params))

    def _has_room(self, server: Server, caller: Caller, method: str) -> bool:
        """Whether a notification is within the limits of its principal: nobody can be told that it is not."""
        try:
            slot = self._limits.admit(caller.client.principal, server.name)
        except RateLimited as exc:
            logger().debug("client.notification.dropped", method=method[:_SHOWN], reason=str(exc)[:200])
            return False
        if slot is not None:
            slot.release()
        return True

    async def _tell(self, server: Server, caller: Caller, method: str, params: Params | None) -> None:
        try:
            await server.notify(server.key_for(caller.client.session, caller.principal_id), method, params)
        except ToolFailure as exc:
            logger().debug("client.notification.dropped", method=method, reason=server.redactor.clean(str(exc), 200))

    async def subscribe(self, uri: object, caller: Caller, listener: Listener) -> Callable[[], None]:
        """Have a client told of changes of a resource; gives back what ends it."""
        return (await self._subscribe(uri, caller, listener)).release

    async def _subscribe(self, uri: object, caller: Caller, listener: Listener) -> Subscription:
        async with RequestRecord(self._audit, "request", caller.client, "resources/subscribe") as record:
            server, own = await self._resource(uri, caller)
            record.target = self._uri_for_record(str(uri))
            with self._place(server, caller, record):
                release = await self.subscriptions.add(server, caller, own, str(uri), listener)
            if not caller.client.filter.admits_resources(server.name):
                # The rule has changed meanwhile.
                release()
                raise _unknown_resource(uri, caller)
        return Subscription(server.name, release)

    async def subscribe_session(self, uri: object, caller: Caller) -> None:
        """The same for as long as a session lasts, or until it unsubscribes."""
        client = self.sessions.get(session := caller.client.session)
        if client is None or session is None or self.session_subscriptions.has(session, str(uri)):
            return
        self.session_subscriptions.check_room(session)
        subscription = await self._subscribe(
            uri, caller, lambda params: _notify(client, "notifications/resources/updated", forward_params(params))
        )
        if self.sessions.get(session) is client:
            self.session_subscriptions.add(session, str(uri), subscription)
        else:
            subscription.release()

    def unsubscribe_session(self, uri: object, caller: Caller) -> None:
        """End it."""
        self.session_subscriptions.remove(caller.client.session or "", str(uri))

    async def set_level(self, caller: Caller, level: str) -> None:
        """A session wants log lines from this level on; servers are told the lowest that anybody wants. That counts as
        a call."""
        if (client := self.sessions.get(caller.client.session)) is not None:
            if (slot := self._limits.admit(caller.client.principal, None)) is not None:
                slot.release()
            self.sessions.set_level(client, level)
            self._tell_level()

    def leave(self, session: str) -> None:
        """A session is over."""
        self.sessions.leave(session)
        self._tell_level()
        self.session_subscriptions.leave(session)

    def forget(self, server: str) -> None:
        """A server was taken out: nobody hears of its resources any more, and all can subscribe to others anew."""
        for uri in self.subscriptions.drop(server):
            self.session_subscriptions.forget(uri)

    def forward_notification(
        self, server: Server, key: str | None, method: str, params: Params, only: str | None
    ) -> None:
        """What a server says outside of any request may be about a client's call that is over, so that it goes to the
        session whose own server it is, or to the only client that this connection ever had; else to nobody."""
        client = self.sessions.get(session_in(key) or only)
        if client is None or not client.filter.admits_server(server.name):
            logger().debug("server.said.unattributed", server=server.name, method=method)
            return
        _between_requests(client).on_notification(method, params)

    async def forward_request(self, server: Server, key: str | None, method: str, params: Params) -> Message:
        """What a server asks outside of any request is put to the session whose own server it is, else to nobody."""
        client = self.sessions.get(session_in(key))
        if client is None or not client.filter.admits_server(server.name):
            raise RpcError(METHOD_NOT_FOUND, f"{method}: no client's request is under way that this could belong to")
        return await _between_requests(client).on_request(method, attribute(method, params, server.name), None)

    def capabilities(self, wanted: Filter) -> dict[str, Any]:
        """What servers can do that Pegboard knows nothing of: announced, since it is passed on."""
        merged: dict[str, Any] = {}
        for name in self._servers_that(wanted.admits_messages):
            for key, value in self._discovery.capabilities.get(name, {}).items():
                if key not in {"tools", "prompts", "resources", "logging", "completions"}:
                    merged[key] = _merge(merged.get(key), value)
        return merged

    @contextlib.contextmanager
    def _place(self, server: Server, caller: Caller, record: RequestRecord) -> Generator[None]:
        """A place within the limits of the caller's principal, as calls of tools have one."""
        record.server = server.name
        slot = self._limits.admit(caller.client.principal, server.name)
        try:
            yield
        finally:
            if slot is not None:
                slot.release()

    async def _era(self, server: Server, caller: Caller) -> str:
        hello = server.hello if server.is_connected else None
        if hello is None:
            key = server.key_for(caller.client.session, caller.principal_id)
            hello = await server.connect(key, caller.client.capabilities)
        return hello.era

    def _server(self, name: str) -> Server:
        server = self._servers().get(name)
        if server is None:
            raise unavailable(f"server {name} was removed from the config", retryable=False)
        self._discovery.refresh_if_stale(name)
        return server

    def _servers_that(self, admits: Callable[[str], bool]) -> list[str]:
        return [name for name, server in self._servers().items() if server.spec.enabled and admits(name)]

    def _owner(self, method: str, params: Params, caller: Caller) -> str:
        seen = self._servers_that(caller.client.filter.admits_messages)
        return self._routes.owner(caller.principal_key, method, params, seen, self._discovery.capabilities)

    async def _prompt(self, name: object, wanted: Filter) -> CatalogEntry:
        if not isinstance(name, str):
            raise RpcError(INVALID_PARAMS, "a prompt's name must be a text")
        prompts = await self._library.prompts_for(wanted.knows_server, wanted.holder)
        if name not in prompts:
            parts = parse(name)
            named = self._servers().get(parts[0]) if parts is not None else None
            unprefixed = [server for server in self._servers().values() if not server.spec.prefix]
            await self._meet([*([named] if named else []), *unprefixed], wanted)
            prompts = await self._library.prompts_for(wanted.knows_server, wanted.holder)
        entry = prompts.get(name)
        if entry is None or not wanted.admits(entry):
            close = nearest(name, [each.name for each in prompts.values() if wanted.admits(each)])
            hint = f" Did you mean {', '.join(close)}?" if close else ""
            if (found := self._discovery.reviews.find_withheld_prompt(name)) and wanted.admits_prompt(found[0], name):
                raise RpcError(INVALID_PARAMS, f'Prompt "{name[:_SHOWN]}" cannot be used: {found[1]}')
            raise RpcError(INVALID_PARAMS, f'Unknown prompt "{name[:_SHOWN]}".{hint}')
        return entry

    async def _resource(self, uri: object, caller: Caller) -> tuple[Server, str]:
        if not isinstance(uri, str):
            raise RpcError(INVALID_PARAMS, "a resource's uri must be a text")
        wanted = caller.client.filter
        seen = wanted.admits_resources, caller.principal_key, wanted.knows_server, wanted.holder
        find = partial(self._library.find_owner, uri, *seen)
        found = await Pace().outcome(find())
        for limit in _DISCOVERY_WAITS:
            if found is not None:
                break
            await self._discovery.discover_new(limit)
            await self._discovery.discover_resources(limit)
            await self._discovery.own.discover(wanted.holder, limit)
            found = await Pace().outcome(find())
            found = found or await self._only_keeper(uri, caller)
        if found is None:
            raise _unknown_resource(uri, caller)
        return self._server(found[0]), found[1]

    async def _only_keeper(self, uri: str, caller: Caller) -> tuple[str, str] | None:
        """Where just one server in sight has resources, what nobody else is known to have can only be its own; it is
        the judge of that."""
        capabilities = self._discovery.capabilities
        wanted = caller.client.filter
        visible = self._servers_that(wanted.admits_resources)
        keepers = [name for name in visible if "resources" in capabilities.get(name, {})]
        seen = caller.principal_key, wanted.knows_server, wanted.holder
        if len(keepers) != 1 or await Pace().outcome(self._library.may_be_others(uri, keepers[0], *seen)):
            return None
        return keepers[0], uri

    async def _meet(self, servers: list[Server], wanted: Filter) -> None:
        """Servers that were never asked may have what is asked for."""
        unseen = [
            server.name
            for server in servers
            if server.spec.enabled
            and not server.spec.problem
            and wanted.admits_server(server.name)
            and server.name not in self._discovery.capabilities
        ]
        if unseen:
            await asyncio.gather(*(self._discovery.discover(name) for name in unseen))
        await self._discovery.own.discover(wanted.holder, _DISCOVERY_WAITS[1])

    def _tell_level(self) -> None:
        level = self.sessions.lowest_level() or ("info" if self.sessions.server_level is not None else None)
        if level is not None and level != self.sessions.server_level:
            self.sessions.server_level = level
            for server in self._servers().values():
                self._tasks.spawn(server.want_level(level))


def _between_requests(client: Client) -> Caller:
    """A session as the requester of what no request of anybody caused."""
    channel = client.channel
    return Caller(
        client,
        notify=channel.notify if channel is not None else None,
        ask=channel.ask if channel is not None else None,
        log_level=client.log_level,
    )


def _notify(client: Client, method: str, params: Params) -> None:
    if client.channel is not None:
        client.channel.notify(method, params)


async def _resume_call(
    server: Server, call: RawCall, requester: Requester
) -> tuple[Message, None] | tuple[None, ToolFailure]:
    """The result of a call that is under way; or why its server turned it away without acting on it."""
    try:
        return await server.resume_call(call, requester), None
    except ToolFailure as exc:
        if is_unacted(exc):
            return None, exc
        raise


def _not_found(caller: Caller) -> int:
    return RESOURCE_NOT_FOUND if caller.client.era == "handshake" else INVALID_PARAMS


def _unknown_resource(uri: object, caller: Caller) -> RpcError:
    return RpcError(_not_found(caller), f"Resource not found: {uri}", {"uri": uri})


def _merge(first: Any, second: Any) -> Any:
    """Two servers' words on one capability: everything that either of them says."""
    before, after = as_object(first), as_object(second)
    if before is None or after is None:
        return second if first is None else first
    return {**before, **{key: _merge(before.get(key), value) for key, value in after.items()}}
