"""The chats toolset: what was asked and answered in an editor's chats, read from where it keeps them."""

from pegboard.toolsets.chats.chats import Chats, local_sources
from pegboard.toolsets.chats.current import CurrentDialog
from pegboard.toolsets.chats.export import file_name, markdown
from pegboard.toolsets.chats.index import chat_index
from pegboard.toolsets.chats.session import ChatRequest, ChatSession
from pegboard.toolsets.chats.tools import chat_tools

__all__ = [
    "ChatRequest",
    "ChatSession",
    "Chats",
    "CurrentDialog",
    "chat_index",
    "chat_tools",
    "file_name",
    "local_sources",
    "markdown",
]
