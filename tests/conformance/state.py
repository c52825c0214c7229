"""What one running fixture remembers, and how its changes and log lines reach clients of either era."""

from dataclasses import dataclass, field
from typing import Final, TypeAlias, get_args

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated, ServerEvent
from mcp.shared.subscriptions import event_to_notification
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request

_LEVELS: Final[tuple[types.LoggingLevel, ...]] = get_args(types.LoggingLevel)


@dataclass
class FixtureState:
    """Shared by every connection; the per-session maps are keyed by session id, `None` being stdio."""

    bus: InMemorySubscriptionBus = field(default_factory=InMemorySubscriptionBus)
    extra_tool: bool = False
    extra_prompt: bool = False
    log_levels: dict[str | None, types.LoggingLevel] = field(default_factory=dict[str | None, types.LoggingLevel])
    subscriptions: dict[str | None, set[str]] = field(default_factory=dict[str | None, set[str]])


Context: TypeAlias = ServerRequestContext[FixtureState]


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def session_key(ctx: Context) -> str | None:
    return ctx.request.headers.get("mcp-session-id") if isinstance(ctx.request, Request) else None


def _wanted_level(ctx: Context) -> str | None:
    if is_modern(ctx):
        # The modern era has no setLevel: silence unless this very request asked for log lines.
        return (ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
    return ctx.lifespan_context.log_levels.get(session_key(ctx), "debug")


async def log(ctx: Context, level: types.LoggingLevel, words: str) -> None:
    wanted = _wanted_level(ctx)
    if wanted not in _LEVELS or _LEVELS.index(level) < _LEVELS.index(wanted):
        return
    params = types.LoggingMessageNotificationParams(level=level, logger="fixture", data=words)
    await ctx.session.send_notification(types.LoggingMessageNotification(params=params), ctx.request_id)


def _handshake_client_wants(ctx: Context, event: ServerEvent) -> bool:
    if not isinstance(event, ResourceUpdated):
        return True
    return event.uri in ctx.lifespan_context.subscriptions.get(session_key(ctx), set())


async def announce(ctx: Context, event: ServerEvent) -> None:
    """Tell every modern listen stream, and the calling session when it came by the handshake."""
    await ctx.lifespan_context.bus.publish(event)
    if not is_modern(ctx) and _handshake_client_wants(ctx, event):
        await ctx.session.send_notification(event_to_notification(event, {}))


async def set_level(ctx: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
    ctx.lifespan_context.log_levels[session_key(ctx)] = params.level
    return types.EmptyResult()


async def subscribe(ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    ctx.lifespan_context.subscriptions.setdefault(session_key(ctx), set()).add(params.uri)
    return types.EmptyResult()


async def unsubscribe(ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    ctx.lifespan_context.subscriptions.get(session_key(ctx), set()).discard(params.uri)
    return types.EmptyResult()
