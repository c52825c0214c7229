"""Chats: how they are found, read, kept, and told."""
