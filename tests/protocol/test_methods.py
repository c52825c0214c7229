"""What counts as a method of the specification, however it is spelt."""

from __future__ import annotations

import mcp_types.methods as spec
import pytest

from pegboard.protocol.methods import (
    NOTIFICATIONS,
    REQUESTS,
    is_relayed_notification,
    is_relayed_request,
)


def named(*tables: object) -> set[str]:
    return {key[0] if isinstance(key, tuple) else key for table in tables for key in table}  # type: ignore[attr-defined]


def test_every_method_that_the_sdk_knows_is_among_them() -> None:
    """A version of the SDK that brings a new method makes this fail, so that somebody decides about it."""
    assert named(spec.CLIENT_REQUESTS, spec.SERVER_REQUESTS) <= REQUESTS
    assert named(spec.CLIENT_NOTIFICATIONS, spec.SERVER_NOTIFICATIONS) <= NOTIFICATIONS


DISGUISES = [
    lambda name: name,
    str.upper,
    lambda name: f" {name}",
    lambda name: f"{name} ",
    lambda name: f"{name}\0",
    lambda name: f"{name}\u200b",
    lambda name: f"/{name}/",
    lambda name: name.replace("/", "//"),
    lambda name: name.replace("/", "."),
    lambda name: name.replace("/", "\\"),
    # Fullwidth forms, which NFKC makes plain letters of.
    lambda name: "".join(chr(ord(c) + 0xFEE0) if c != "_" else c for c in name),
    lambda name: name.replace("s", "\u017f"),
    lambda name: name.replace("o", "o\u0301"),
]


@pytest.mark.parametrize("disguise", DISGUISES)
@pytest.mark.parametrize("method", sorted(REQUESTS | NOTIFICATIONS))
def test_a_method_in_disguise_is_not_relayed(method: str, disguise: object) -> None:
    """Neither as a request nor as a notification; those that are relayed are so under their exact names alone."""
    name = disguise(method)  # type: ignore[operator]
    exact = name == method
    assert is_relayed_request(name) is (exact and method.startswith("tasks/"))
    told = method.startswith(("notifications/roots/", "notifications/tasks/"))
    assert is_relayed_notification(name) is (exact and told)


@pytest.mark.parametrize("method", ["toy/shout", "com.example/tools/call", "tools/call/all", "x", ""])
def test_what_nobody_knows_is_relayed(method: str) -> None:
    """An extension's own methods go on; its notifications only if they say that they are some."""
    assert is_relayed_request(method)
    assert not is_relayed_notification(method)
    assert is_relayed_notification(f"notifications/{method}/x")
