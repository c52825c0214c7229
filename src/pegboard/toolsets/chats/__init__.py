"""The chats toolset: what was asked and answered in an editor's chats, read from where it keeps them."""

from pegboard.toolsets.chats.chats import Chats, local_sources
from pegboard.toolsets.chats.current import CurrentDialog
from pegboard.toolsets.chats.export import file_name, markdown
from pegboard.toolsets.chats.schema import chat_index
from pegboard.toolsets.chats.session import Request, Session
from pegboard.toolsets.chats.tools import chat_tools

__all__ = [
    "Chats",
    "CurrentDialog",
    "Request",
    "Session",
    "chat_index",
    "chat_tools",
    "file_name",
    "local_sources",
    "markdown",
]
