"""The chats toolset: what was asked and answered in an editor's chats, read from where it keeps them."""
