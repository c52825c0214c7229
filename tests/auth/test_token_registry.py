"""Tokens in storage, on SQLite and PostgreSQL: add, rotate, remove, and what is refused."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from pegboard.auth.token import digest_of
from pegboard.auth.token_registry import TokenRegistry
from pegboard.result import Conflict, ToolFailure
from pegboard.storage import Storage

pytestmark = pytest.mark.anyio


async def test_a_token_is_added_rotated_and_removed(storage: Storage) -> None:
    """What is kept fits the text that was given back, and no other; rotating keeps everything else."""
    tokens = TokenRegistry(storage.tokens)
    token, text = await tokens.add("ci", {"servers": ["git*"], "rate": "60/m"}, "30d")
    (kept,) = await tokens.list()
    assert kept == token
    assert kept.fits(text)
    assert kept.expires_at is not None
    assert 29 < (kept.expires_at - time.time()) / 86400 <= 30
    rotated, other = await tokens.rotate("ci", None)
    (kept,) = await tokens.list()
    assert kept == rotated
    assert kept.fits(other)
    assert not kept.fits(text)
    assert (kept.id, kept.rule, kept.created_at, kept.expires_at) == (
        token.id,
        token.rule,
        token.created_at,
        token.expires_at,
    )
    later, _ = await tokens.rotate("ci", "60d")
    assert (later.expires_at or 0) > (token.expires_at or 0)
    await tokens.remove("ci")
    assert await tokens.list() == []


async def test_each_change_is_another_version_and_a_use_is_none(storage: Storage) -> None:
    """Whoever follows the tokens notices each of them, also one that takes another back."""
    store, changes = storage.tokens, list[int]()
    tokens = TokenRegistry(store)
    changes.append(await store.version())
    token, _ = await tokens.add("one", {}, None)
    changes.append(await store.version())
    await tokens.rotate("one", None)
    changes.append(await store.version())
    await tokens.remove("one")
    changes.append(await store.version())
    token, _ = await tokens.add("one", {}, None)
    changes.append(await store.version())
    assert len(set(changes)) == 5
    await store.touch({token.id: 7.0})
    assert await store.version() == changes[-1]
    await store.touch({token.id: 5.0})
    assert [each.last_used_at for each in await tokens.list()] == [7.0]


async def test_of_two_who_add_a_name_at_once_one_is_refused(storage: Storage) -> None:
    """The other is told of `rotate`, and changes nothing."""
    tokens = TokenRegistry(storage.tokens)
    outcomes = await asyncio.gather(*(tokens.add("ci", {}, None) for _ in range(2)), return_exceptions=True)
    (refused,) = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert "pegboard token rotate ci" in str(refused)
    ((_, text),) = [outcome for outcome in outcomes if isinstance(outcome, tuple)]
    (kept,) = await tokens.list()
    assert kept.fits(text)


@pytest.mark.parametrize(
    ("name", "rule", "expires", "words"),
    [
        ("a b", {}, None, "a token's name has letters"),
        ("ci", {"server": ["x"]}, None, "did you mean servers"),
        ("ci", {"who": ["*"]}, None, "who is for rules of the config"),
        ("ci", {"scopes": {"*": ["x"]}}, None, "scopes is for rules of the config"),
        ("ci", {"toolsets": ["memroy"]}, None, "is not a toolset"),
        ("ci", {"rate": "60"}, None, "rate must be a rate"),
        ("ci", [], None, "must be an object"),
        ("ci", {}, "soon", "expires must be a time"),
    ],
)
async def test_what_cannot_be_understood_is_refused_as_a_whole(
    sqlite_storage: Storage, name: str, rule: Any, expires: str | None, words: str
) -> None:
    """Nothing is kept of it."""
    tokens = TokenRegistry(sqlite_storage.tokens)
    with pytest.raises(ToolFailure, match=words):
        await tokens.add(name, rule, expires)
    assert await tokens.list() == []


async def test_a_token_that_there_is_not_is_neither_rotated_nor_removed(sqlite_storage: Storage) -> None:
    """The nearest name is offered."""
    tokens = TokenRegistry(sqlite_storage.tokens)
    await tokens.add("laptop", {}, None)
    for work in (tokens.rotate("labtop", None), tokens.remove("labtop")):
        with pytest.raises(ToolFailure, match=r"there is no token 'labtop': did you mean laptop\?"):
            await work


async def test_an_expired_token_is_rotated_only_with_a_new_time(sqlite_storage: Storage) -> None:
    """Else whoever asked would get a secret that lets nobody in."""
    tokens = TokenRegistry(sqlite_storage.tokens)
    await sqlite_storage.tokens.add("a" * 12, "old", digest_of("x"), "{}", 1.0, 2.0)
    with pytest.raises(ToolFailure, match="has expired"):
        await tokens.rotate("old", None)
    token, _ = await tokens.rotate("old", "1h")
    assert not token.is_expired(time.time())


@pytest.mark.parametrize("written", ['{"ask": ["x"]}', "[]", "not json"])
async def test_a_token_whose_rule_cannot_be_read_lets_nobody_in(sqlite_storage: Storage, written: str) -> None:
    """A part that is not understood may be a limit; the others stay as they are."""
    await sqlite_storage.tokens.add("a" * 12, "strange", digest_of("x"), written, 1.0, None)
    tokens = TokenRegistry(sqlite_storage.tokens)
    await tokens.add("plain", {}, None)
    strange, plain = await tokens.list()
    assert "its rule cannot be read" in strange.problem
    assert plain.problem == ""


async def test_the_boards_of_a_token_go_with_it(storage: Storage) -> None:
    """Those of others stay."""
    tokens = TokenRegistry(storage.tokens)
    token, _ = await tokens.add("one", {}, None)
    other, _ = await tokens.add("two", {}, None)
    for board in (f"principal:token:{token.id}:editor", f"principal:token:{other.id}:editor", "desk"):
        await storage.boards.change(board, add=["t"])
    await tokens.remove("one")
    assert set(await storage.boards.load()) == {f"principal:token:{other.id}:editor", "desk"}
