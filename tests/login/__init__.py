"""Signing in to servers: by commands, by REST, by a browser."""
