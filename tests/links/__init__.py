"""Tests of links: one server, its conversation, and whoever takes part in it."""
