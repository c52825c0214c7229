"""Whose connection a request takes."""

from __future__ import annotations

from typing import Literal

import pytest

from pegboard.config import ServerSpec
from pegboard.config.oauth_settings import OAuthPer, OAuthSettings
from pegboard.servers.connection_key import belongs_to, is_shared, key_of, principal_in, session_in


def spec(instance: Literal["shared", "session"], per: OAuthPer, **more: dict[str, str]) -> ServerSpec:
    return ServerSpec(
        name="a", given_name="a", transport="http", url="https://a.example", instance=instance,
        oauth=OAuthSettings(per=per), **more,  # pyright: ignore[reportArgumentType]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("instance", "per", "session", "principal", "key"),
    [
        ("shared", "gateway", "s1", "ada", None),
        ("session", "gateway", "s1", "ada", "s1"),
        ("session", "gateway", None, "ada", None),
        ("shared", "user", "s1", "ada", "user:ada"),
        ("shared", "user", None, "", "user:"),
        ("session", "user", "s1", "https://x user:y", "s1 user:https://x user:y"),
        ("session", "user", None, "ada", "user:ada"),
    ],
)
def test_key_says_whose_it_is(
    instance: Literal["shared", "session"], per: OAuthPer, session: str | None, principal: str, key: str | None
) -> None:
    """A session and a principal have what is their own, and what they have in it can be told from the key."""
    server = spec(instance, per)
    assert key_of(server, session, principal) == key
    assert session_in(key) == (session if instance == "session" else None)
    assert principal_in(key) == (principal if per == "user" else None)
    assert is_shared(server) is (instance == "shared" and per == "gateway")
    assert belongs_to(server, key, principal)
    assert belongs_to(server, key, "somebody else") is (per == "gateway")


def test_server_with_a_header_of_its_own_is_nobodys() -> None:
    """What everybody sends alike is sent over one connection."""
    assert is_shared(spec("shared", "user", headers={"Authorization": "Bearer x"}))
