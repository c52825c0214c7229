"""The fair cache: no owner takes the room of the others."""

from __future__ import annotations

from pegboard.faircache import FairCache


def cache_of(limit: int, **sizes: int) -> FairCache[int, str]:
    """A cache in which each owner, one after the other, put in so many values."""
    cache = FairCache[int, str](limit)
    for owner, size in sizes.items():
        for number in range(size):
            cache.put(owner, number, owner)
    return cache


def kept(cache: FairCache[int, str], owner: str) -> list[int]:
    return [number for number in range(1000) if cache.get(owner, number) is not None]


def test_each_owner_has_its_own_values() -> None:
    """The same key of another owner is another one."""
    cache = cache_of(10, ada=1, bob=2)
    assert (cache.get("ada", 0), cache.get("bob", 0), cache.get("ada", 1), cache.get("eve", 0)) == (
        *("ada", "bob"),
        *(None, None),
    )
    assert len(cache) == 3


def test_one_owner_alone_has_all_the_room() -> None:
    """Its oldest goes for its youngest; one that is put in again is young again, and takes no more room."""
    cache = cache_of(300, ada=300)
    assert cache.put("ada", 0, "again") is None
    assert cache.put("ada", 300, "new") == (1, "ada")
    assert cache.put("ada", 301, "new") == (2, "ada")
    assert (len(cache), cache.get("ada", 0)) == (300, "again")


def test_whoever_has_most_loses_to_the_others() -> None:
    """However long the others have put nothing in."""
    cache = cache_of(300, ada=2, eve=600)
    assert (len(kept(cache, "ada")), len(kept(cache, "eve"))) == (2, 298)
    for number in range(100):
        cache.put("bob", number, "bob")
    assert [len(kept(cache, owner)) for owner in ("ada", "bob", "eve")] == [2, 100, 198]
    assert len(cache) == 300


def test_among_small_owners_the_one_that_was_idle_the_longest_loses() -> None:
    """Names that somebody made up once do not stay for ever."""
    cache = cache_of(300, **{f"made-up-{number}": 3 for number in range(99)}, ada=3)
    cache.put("made-up-0", 0, "again")
    for number in range(3):
        cache.put("bob", number, "bob")
    assert [len(kept(cache, owner)) for owner in ("made-up-0", "made-up-1", "made-up-2", "ada")] == [3, 0, 3, 3]
    assert len(cache) == 300
