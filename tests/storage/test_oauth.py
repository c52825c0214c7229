"""Sign-ins as they are kept, on each database: compare and set, leases, sign-ins under way."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace

import pytest

from harness import LIMIT
from pegboard.storage import Storage
from pegboard.storage.oauth import GrantRow
from storage.oauth_samples import GRANT, flow
from storage.samples import at_once

pytestmark = pytest.mark.anyio


async def saved(storage: Storage, row: GrantRow = GRANT) -> GrantRow:
    """A grant as it is kept."""
    assert await storage.oauth.save_grant(row, expected_version=None)
    kept = await storage.oauth.load_grant(row.server, row.principal)
    assert kept is not None
    return kept


# Registrations and grants


async def test_a_registration_belongs_to_an_issuer_and_an_address(storage: Storage) -> None:
    """It is replaced and forgotten by both."""
    store = storage.oauth
    await store.save_client("https://a", "http://127.0.0.1:1/cb", b"one")
    await store.save_client("https://a", "http://127.0.0.1:2/cb", b"two")
    await store.save_client("https://a", "http://127.0.0.1:1/cb", b"three")
    assert await store.load_client("https://a", "http://127.0.0.1:1/cb") == b"three"
    assert await store.load_client("https://b", "http://127.0.0.1:1/cb") is None
    await store.delete_client("https://a", "http://127.0.0.1:1/cb")
    assert await store.load_client("https://a", "http://127.0.0.1:1/cb") is None
    assert await store.load_client("https://a", "http://127.0.0.1:2/cb") == b"two"


async def test_a_grant_comes_back_as_it_was_saved(storage: Storage) -> None:
    """All of it, for one principal and for the gateway itself."""
    theirs = replace(GRANT, principal="token:1", resource=None, expires_at=None, scopes=(), reason="so")
    one, two = await saved(storage), await saved(storage, theirs)
    assert one == replace(GRANT, version=one.version)
    assert two == replace(theirs, version=two.version)
    assert await storage.oauth.list_grants() == [one, two]
    assert await storage.oauth.load_grant("linear", "token:2") is None


async def test_a_grant_is_saved_only_over_the_version_that_was_read(storage: Storage) -> None:
    """Whoever comes second has lost, and nothing of theirs is kept."""
    store, first = storage.oauth, await saved(storage)
    assert await store.save_grant(replace(first, sealed=b"mine"), expected_version=first.version)
    assert not await store.save_grant(replace(first, sealed=b"late"), expected_version=first.version)
    second = await store.load_grant("linear", "")
    assert second is not None
    assert (second.sealed, second.version) == (b"mine", first.version + 1)
    assert not await store.save_grant(replace(GRANT, server="none"), expected_version=1)
    assert await store.load_grant("none", "") is None


async def test_a_grant_is_deleted_only_in_the_version_that_was_read(storage: Storage) -> None:
    """Or whatever is there, if nobody says which; and no later grant has a version of one that was there before."""
    store, first = storage.oauth, await saved(storage)
    again = await saved(storage)
    assert not await store.delete_grant("linear", "", first.version)
    assert await store.delete_grant("linear", "", again.version)
    assert not await store.delete_grant("linear", "")
    assert (await saved(storage)).version > again.version
    assert await store.delete_grant("linear", "")


async def test_changes_of_grants_are_counted(storage: Storage) -> None:
    """Saved, replaced and deleted; what changed nothing, and leases, do not count."""
    store = storage.oauth
    seen = [await store.grants_version()]
    row = await saved(storage)
    seen.append(await store.grants_version())
    await store.save_grant(row, expected_version=row.version)
    seen.append(await store.grants_version())
    await store.save_grant(row, expected_version=row.version)
    await store.take_lease("linear", "", row.version + 1, "me", 30)
    await store.delete_grant("linear", "", row.version)
    assert await store.grants_version() == seen[-1]
    await store.delete_grant("linear", "")
    seen.append(await store.grants_version())
    assert seen == sorted(set(seen))


# Leases


async def test_one_holds_the_lease_of_a_grant(storage: Storage) -> None:
    """Another one gets it after it was released; the holder may take it again; a wrong version never."""
    store, row = storage.oauth, await saved(storage)
    lease = "linear", "", row.version
    assert await store.take_lease(*lease, "me", 30)
    assert not await store.take_lease(*lease, "you", 30)
    assert await store.take_lease(*lease, "me", 30)
    await store.release_lease("linear", "", "you")
    assert not await store.take_lease(*lease, "you", 30)
    await store.release_lease("linear", "", "me")
    assert not await store.take_lease("linear", "", row.version + 1, "you", 30)
    assert not await store.take_lease("linear", "other", row.version, "you", 30)
    assert await store.take_lease(*lease, "you", 30)


async def test_a_lease_ends_by_the_clock_of_the_database(storage: Storage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever held it may be dead; that the clock of a process is wrong gives nobody a lease early."""
    store, row = storage.oauth, await saved(storage)
    lease = "linear", "", row.version
    assert await store.take_lease(*lease, "dead", 1.0)
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + 3600)
    assert not await store.take_lease(*lease, "me", 30)
    async with asyncio.timeout(LIMIT):
        while not await store.take_lease(*lease, "me", 30):
            await asyncio.sleep(0.05)
    assert not await store.take_lease(*lease, "dead", 30)


async def test_a_lease_ends_with_what_it_was_for(storage: Storage) -> None:
    """The renewed grant can be leased at once."""
    store, row = storage.oauth, await saved(storage)
    assert await store.take_lease("linear", "", row.version, "me", 30)
    assert await store.save_grant(row, expected_version=row.version)
    assert await store.take_lease("linear", "", row.version + 1, "you", 30)


async def test_a_lock_has_one_holder_until_it_is_released_or_over(storage: Storage) -> None:
    """For what is done once where there is no grant yet."""
    store = storage.oauth
    assert await store.take_lock("register a", "me", 30)
    assert not await store.take_lock("register a", "you", 30)
    assert await store.take_lock("register b", "you", 0.05)
    await store.release_lock("register a", "you")
    assert not await store.take_lock("register a", "you", 30)
    await store.release_lock("register a", "me")
    assert await store.take_lock("register a", "you", 30)
    async with asyncio.timeout(LIMIT):
        while not await store.take_lock("register b", "me", 30):
            await asyncio.sleep(0.05)


RENEW = """
import asyncio, json, sys
from dataclasses import replace
from pegboard.storage import open_storage

async def main():
    place, name = sys.argv[1:]
    storage = open_storage(place)
    await storage.open()
    store = storage.oauth
    row = await store.load_grant("linear", "")
    print("ready", flush=True)
    sys.stdin.readline()
    won = []
    for version in range(row.version, row.version + 20):
        if await store.take_lease("linear", "", version, name, 30):
            current = await store.load_grant("linear", "")
            assert current.version == version, (current.version, version)
            assert await store.save_grant(replace(current, sealed=name.encode()), expected_version=version)
            won.append(version)
        while (await store.load_grant("linear", "")).version == version:
            await asyncio.sleep(0.005)
    print(json.dumps(won))
    await storage.close()

asyncio.run(main())
"""


async def test_eight_processes_renew_each_version_of_a_grant_once(storage: Storage, place: str) -> None:
    """Twenty times over: of all who see that it has expired, one gets the lease and the others see what it saved."""
    row = await saved(storage)
    said = await asyncio.to_thread(at_once, RENEW, place, [f"process {number}" for number in range(8)])
    won = [version for each in said for version in json.loads(each)]
    assert sorted(won) == list(range(row.version, row.version + 20))


# Sign-ins under way


async def test_a_sign_in_is_used_once(storage: Storage) -> None:
    """Of all that come with its state one gets it, with its secrets, which are gone then."""
    store, row = storage.oauth, flow("s")
    await store.save_flow(row)
    assert await store.load_flow(row.state_hash) == row
    assert await store.load_flow_by_id(row.flow_id) == row
    used = await asyncio.gather(*(store.use_flow(row.state_hash) for _ in range(8)))
    assert [each for each in used if each is not None] == [row]
    kept = await store.load_flow(row.state_hash)
    assert kept == replace(row, is_used=True, sealed=b"")
    assert await store.find_flow("linear", "") is None
    assert await store.use_flow("another") is None
    assert await store.load_flow("another") is None


async def test_a_sign_in_that_expired_cannot_be_used(storage: Storage) -> None:
    """Nor is it found as one under way."""
    row = flow("s", seconds=-1)
    await storage.oauth.save_flow(row)
    assert await storage.oauth.use_flow(row.state_hash) is None
    assert await storage.oauth.find_flow("linear", "") is None


async def test_the_outcome_of_a_sign_in_is_kept_for_a_while(storage: Storage) -> None:
    """The first one counts, its secrets are gone, and after ten minutes it is forgotten."""
    store, row = storage.oauth, flow("s")
    await store.save_flow(row)
    await store.end_flow(row.flow_id, "done")
    await store.end_flow(row.flow_id, "cancelled")
    kept = await store.load_flow_by_id(row.flow_id)
    assert kept is not None
    assert (kept.outcome, kept.sealed) == ("done", b"")
    assert await store.use_flow(row.state_hash) is None
    assert await store.find_flow("linear", "") is None
    await store.save_flow(flow("next"))
    assert await store.load_flow_by_id(row.flow_id) is not None
    age = "UPDATE oauth_flows SET expires_at = expires_at - 601 WHERE flow_id = ?"
    await storage.database.write(lambda connection: connection.execute(age, row.flow_id))
    await store.save_flow(flow("last"))
    assert await store.load_flow_by_id(row.flow_id) is None
    assert await store.load_flow_by_id("flow-next") is not None


async def test_the_newest_sign_in_under_way_is_found(storage: Storage) -> None:
    """By server and principal."""
    store, old = storage.oauth, flow("old")
    new = replace(flow("new"), created_at=old.created_at + 1)
    for row in (new, old, flow("theirs", principal="token:1"), flow("other", server="notion")):
        await store.save_flow(row)
    assert await store.find_flow("linear", "") == new
    assert (await store.find_flow("linear", "token:1") or old).flow_id == "flow-theirs"
    assert await store.find_flow("linear", "token:2") is None


async def test_of_sign_ins_that_begin_at_once_one_counts(storage: Storage) -> None:
    """Everybody is given that one; after its end the next can begin."""
    store = storage.oauth
    begun = await asyncio.gather(*(store.add_flow(flow(str(number))) for number in range(8)))
    (flow_id,) = {row.flow_id for row in begun}
    await store.end_flow(flow_id, "done")
    assert (await store.add_flow(flow("next"))).flow_id == "flow-next"


# Sealed anew


async def test_every_secret_can_be_sealed_anew_unless_it_changed(storage: Storage) -> None:
    """Neither the version nor the lease of a grant changes by it; secrets that are used up are not there."""
    store, row = storage.oauth, await saved(storage)
    await store.save_client("https://a", "http://127.0.0.1:1/cb", b"client")
    await store.save_flow(flow("s"))
    await store.save_flow(flow("used"))
    await store.use_flow(flow("used").state_hash)
    assert await store.take_lease("linear", "", row.version, "me", 30)
    version = await store.grants_version()
    rows = await store.list_secrets()
    assert {each.context for each in rows} == {
        ("oauth_clients", "https://a", "http://127.0.0.1:1/cb"),
        row.context,
        flow("s").context,
    }
    for each in rows:
        assert await store.reseal(each, b"anew " + each.sealed)
        assert not await store.reseal(each, b"late " + each.sealed)
    assert await store.load_client("https://a", "http://127.0.0.1:1/cb") == b"anew client"
    assert await store.load_grant("linear", "") == replace(row, sealed=b"anew " + row.sealed)
    assert await store.grants_version() == version
    assert not await store.take_lease("linear", "", row.version, "you", 30)
