"""Why a request does not take the fast path: a closed set, counted in `/metrics`."""

from __future__ import annotations

from enum import StrEnum


class Decline(StrEnum):
    """The reason why a request takes the full path."""

    CONNECTION = "connection"
    """Another request on its connection is under way, or its HTTP is out of the ordinary."""
    HEADERS = "headers"
    """The guard refuses it, or its headers are out of the ordinary."""
    PRINCIPAL = "principal"
    """Who sends it cannot be told at once, or is not let in."""
    STOPPING = "stopping"
    """The gateway is stopping."""
    SESSION = "session"
    """It has no session that is ready, or another version of the protocol."""
    BODY = "body"
    """It is too large, or no single JSON-RPC request: a notification, an answer, a batch."""
    CLIENT = "client"
    """Its client cannot be told from its `_meta`, or `Mcp-Method` or `Mcp-Name` differ from its body."""
    METHOD = "method"
    """Its method is none of `tools/call`, `tools/list` and `ping`."""
    PARAMS = "params"
    """A call has other params than a name, arguments and `_meta`, or a list asks for a page (`cursor`)."""
    META = "meta"
    """Its `_meta` asks for something: progress, a task, a narrower list."""
    TOOL = "tool"
    """Its tool is unknown, or not for this client."""
    SCOPES = "scopes"
    """Its tool needs a scope that its token does not have."""
    OWN_TOOL = "own_tool"
    """Its tool is one of Pegboard's own that may take its time, or that calls another."""
    HEADER_ARGUMENTS = "header_arguments"
    """Arguments of its tool have to be sent as HTTP headers, too."""
    AUDIT = "audit"
    """It could not be recorded, and every call has to be."""
    SERVER = "server"
    """Its server is not connected, or cannot take a call as bytes now."""
    HANDED_OVER = "handed_over"
    """It was begun, and then took long, or its server asked or said something, or its answer was unusual."""
