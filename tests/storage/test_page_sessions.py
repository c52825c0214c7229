"""Sign-ins at the page as they are kept, on each database."""

from __future__ import annotations

import pytest

from pegboard.storage import Storage, page_sessions

pytestmark = pytest.mark.anyio


async def test_a_session_goes_on_until_it_is_ended_or_over(storage: Storage) -> None:
    """Each for itself, and one that nobody began does not."""
    store = storage.page_sessions
    await store.add("a", "token:1", 10.0, 20.0)
    await store.add("b", "token:1", 10.0, 30.0)
    assert [await store.has(each, 15.0) for each in ("a", "b", "c")] == [True, True, False]
    assert [await store.has(each, 20.0) for each in ("a", "b")] == [False, True]
    await store.end("b")
    assert [await store.has(each, 15.0) for each in ("a", "b")] == [True, False]


async def test_few_sessions_are_kept(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """None that is over, and of one principal the last ones; those of others stay."""
    monkeypatch.setattr(page_sessions, "MOST_OF_PRINCIPAL", 2)
    store = storage.page_sessions
    await store.add("other", "token:2", 0.0, 50.0)
    for number in range(4):
        await store.add(f"s{number}", "token:1", 0.0, 60.0 + number)
    assert [await store.has(each, 1.0) for each in ("other", "s0", "s1", "s2", "s3")] == [
        True,
        False,
        False,
        True,
        True,
    ]
    await store.add("new", "token:3", 62.5, 99.0)
    assert [await store.has(each, 1.0) for each in ("other", "s2", "s3", "new")] == [False, False, True, True]
