"""Which transport each name in the config stands for."""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.config.settings import Transport as TransportName
from pegboard.servers.transports.sse import SseTransport
from pegboard.servers.transports.stdio import StdioTransport
from pegboard.servers.transports.streamable_http import StreamableHttpTransport
from pegboard.servers.transports.transport import Transport

TRANSPORTS: Mapping[TransportName, type[Transport]] = {
    "stdio": StdioTransport,
    "http": StreamableHttpTransport,
    "sse": SseTransport,
}
