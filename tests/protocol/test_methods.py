"""What counts as a method of the specification, however it is spelt."""

from __future__ import annotations

from collections.abc import Callable

import mcp_types.methods as spec
import pytest

from pegboard.protocol.methods import (
    LONGEST_METHOD,
    NOTIFICATIONS,
    REQUESTS,
    notification_problem,
    request_problem,
)

Disguise = Callable[[str], str]


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
    lambda name: f"{name}\0x",
    lambda name: f"{name}\u200b",
    lambda name: f"/{name}/",
    lambda name: name.replace("/", "//") + "/",
    lambda name: name.replace("/", ".").upper(),
    lambda name: name.replace("/", "\\") + "\n",
    # Fullwidth forms, which NFKC makes plain letters of.
    lambda name: "".join(chr(ord(c) + 0xFEE0) if c != "_" else c for c in name),
    lambda name: name.replace("i", "\u0131").replace("s", "\u017f"),
    lambda name: name.replace("o", "o\u0301") + "\u0301",
    lambda name: f"{name}?x",
]
# Of a method with more than one word; `com.example/ping` and `ui/initialize` may be anybody's.
BESIDE = [
    lambda name: f"{name}/x",
    lambda name: f"{name}.x",
    lambda name: f"{name}-2",
    lambda name: f"{name}2",
    lambda name: f"x-{name}",
    lambda name: f"com.example/{name}",
    lambda name: f"$/{name.upper().replace('/', '_')}:x",
]
RELAYED = {"notifications/roots/list_changed", "notifications/tasks/status"}


@pytest.mark.parametrize("method", sorted(REQUESTS | NOTIFICATIONS))
def test_a_method_in_disguise_is_not_relayed(method: str) -> None:
    """Neither as a request nor as a notification; those that are relayed are so under their exact names alone."""
    for name in (disguise(method) for disguise in DISGUISES):
        exact = name == method
        assert (request_problem(name) is None) is (exact and method.startswith("tasks/")), name
        assert (notification_problem(name) is None) is (exact and method in RELAYED), name


@pytest.mark.parametrize("method", sorted((REQUESTS | NOTIFICATIONS) - {"ping", "initialize"}))
def test_a_method_with_something_beside_it_is_not_relayed(method: str) -> None:
    """A server that looks at the beginning or the end of a name alone would take it for that method."""
    for name in (disguise(method) for disguise in BESIDE):
        assert request_problem(name) is not None, name
        assert notification_problem(name) is not None, name
        assert notification_problem(f"notifications/{name}") is not None, name


EXTENSIONS = [
    "toy/shout",
    "com.example/ping",
    "ui/initialize",
    "com.example.tools/inspect",
    "tools/calls",
    "tasks/getAll",
    "retools/call",
    "tasks/watch",
    "$/setTrace",
    "rpc.discover",
    "text-document:hover_2",
    "x" * LONGEST_METHOD,
]


@pytest.mark.parametrize("method", EXTENSIONS)
def test_what_nobody_knows_is_relayed(method: str) -> None:
    """An extension's own methods go on; its notifications only if they say that they are some."""
    assert request_problem(method) is None
    assert notification_problem(method) is not None
    assert notification_problem(f"notifications/{method}"[:LONGEST_METHOD]) is None


NO_METHODS = [
    "",
    " ",
    "toy/shout\0",
    "toy/\tshout",
    "toy/shout\u0301",
    "toy shout",
    "toy/sh\u00f6ut",
    "x" * (LONGEST_METHOD + 1),
]


@pytest.mark.parametrize("method", NO_METHODS)
def test_a_method_has_plain_characters_and_an_end(method: str) -> None:
    """Whatever a server does with others, it is not asked; the refusal says what a name may have."""
    assert "may have" in (request_problem(method) or "")
    assert "may have" in (notification_problem(f"notifications/{method}#") or "")
