"""Full text over requests and answers, the same in either database."""

from __future__ import annotations

import pytest

from chats.conftest import Now
from chats.makers import Home, append, log, push, request, session, whole
from pegboard.storage import Database
from pegboard.toolsets.chats import chats as chats_module
from pegboard.toolsets.chats.answers import page_info
from pegboard.toolsets.chats.chats import Chats, NotThere

pytestmark = pytest.mark.anyio


def answered(text: str, answer: str) -> dict[str, object]:
    return {**request(text), "response": [{"value": answer}]}


DIALOGS = {
    "login": [answered("Fix the login bug in GitHub Actions", "The token had expired; I renewed it.")],
    "upload": [
        answered("Add retries to the uploader", "I wrapped uploadFile in an exponential backoff."),
        answered("And a test for it", "Done: test_upload_retries passes."),
    ],
    "pool": [answered("数据库连接池在高峰时耗尽", "把连接池调大。")],
    "uber": [answered("Über die Größe", "Straße")],
}


async def found(chats: Chats, query: str) -> set[tuple[str, int]]:
    return {(hit.session.session_id, hit.index) for hit in (await chats.search(query)).items}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("login", {("login", 1)}),
        ("LOGINS", {("login", 1)}),
        ("renewed token", {("login", 1)}),
        ("github", {("login", 1)}),
        ("GitHub", {("login", 1)}),
        ("upload_file", {("upload", 1)}),
        ("upload file", {("upload", 1)}),
        ("retry backoff", {("upload", 1)}),
        ('"exponential backoff"', {("upload", 1)}),
        ('"backoff exponential"', set()),
        ("retries", {("upload", 1), ("upload", 2)}),
        ("连接池", {("pool", 1)}),
        ("高峰", {("pool", 1)}),
        ("uber grosse", {("uber", 1)}),
        # Nobody has both: then whoever has one.
        ("login backoff", {("login", 1), ("upload", 1)}),
        ("the", {("login", 1), ("upload", 1)}),
        ("kangaroo", set()),
        ("", set()),
        ('"', set()),
        ("' OR 1=1 -- * ( ) : ^ NEAR", set()),
        ("\0\ud800", set()),
    ],
)
async def test_what_a_query_finds(database: Database, home: Home, query: str, expected: set[tuple[str, int]]) -> None:
    """Other forms of a word, phrases, identifiers, scripts without spaces; never an error."""
    for name, requests in DIALOGS.items():
        home.chat(name, {**session(), "requests": requests})
    chats = Chats(database, home.sources())
    assert await found(chats, query) == expected
    await chats.close()


async def test_excerpts_are_marked_wherever_it_was(home: Home, chats: Chats) -> None:
    """In the request, else in the answer, else its beginning."""
    home.chat(
        "one", {**session(), "requests": [answered("Where is the\nneedle?", "In the " + "hay " * 200 + "stack.")]}
    )
    assert (await chats.search("needle")).items[0].excerpt == "Where is the <mark>needle</mark>?"
    shown = (await chats.search("stack")).items[0].excerpt
    assert shown.startswith("…")
    assert shown.endswith("<mark>stack</mark>.")
    assert len(shown) < 300


async def test_only_some_dialogs_can_be_searched(home: Home, chats: Chats) -> None:
    """Those of a folder, or one; in pages."""
    for number in range(5):
        home.chat(f"s{number}", session("needle", "needle"), workspace=f"w{number}", folder=f"file:///p/{number}")
    assert (await chats.search("needle")).total == 10
    assert (await chats.search("needle", workspace="/p/3")).total == 2
    assert (await chats.search("needle", session_id="s1")).total == 2
    pages = [await chats.search("needle", limit=4, offset=offset) for offset in (0, 4, 8, 12)]
    hits = [(hit.session.session_id, hit.index) for page in pages for hit in page.items]
    assert len(hits) == len(set(hits)) == 10
    assert [len(page.items) for page in pages] == [4, 4, 2, 0]


async def test_an_unknown_dialog_is_not_one_without_a_match(home: Home, chats: Chats) -> None:
    """Whoever names it learns that there is none; one that cannot be read has nothing to find."""
    home.chat("empty", b"")
    with pytest.raises(NotThere, match="Session not found: nobody"):
        await chats.search("needle", session_id="nobody")
    assert (await chats.search("needle", session_id="empty")).total == 0


async def test_many_others_hide_nothing_of_the_dialog_that_is_searched(
    home: Home, chats: Chats, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the wanted files are looked through; where even of those too much is found, the answer says so."""
    monkeypatch.setattr(chats_module, "_MOST_HITS", 5)
    home.chat("big", session(*["needle"] * 20), workspace="other", folder="file:///p/other")
    long = "a needle somewhere in a request that has many more words than any other one of all these"
    home.chat("small", session(long), workspace="mine", folder="file:///p/mine")
    for page in (await chats.search("needle", session_id="small"), await chats.search("needle", workspace="/p/mine")):
        assert ([hit.session.session_id for hit in page.items], page.total, page.cut) == (["small"], 1, False)
        assert "message" not in page_info(page)
    page = await chats.search("needle")
    assert (page.total, page.cut) == (5, True)
    assert "More than the best 5" in page_info(page)["message"]


async def test_what_changes_is_found_as_it_is_now(database: Database, home: Home, now: Now) -> None:
    """New requests, changed ones, and those that were taken back."""
    chats = Chats(database, home.sources(), clock=now)
    path = home.chat("one", log(whole(session("alpha", "beta"))))
    assert await found(chats, "beta") == {("one", 2)}
    append(path, log(push(["requests"], request("gamma", 2), request("delta", 3), cut=1)))
    assert await found(chats, "beta") == set()
    assert await found(chats, "gamma") == {("one", 2)}
    assert await found(chats, "delta") == {("one", 3)}
    assert await found(chats, "alpha") == {("one", 1)}
    append(path, log(push(["requests"], cut=1)))
    assert await found(chats, "delta gamma") == set()
    await chats.close()


async def test_requests_count_more_than_answers(database: Database, home: Home) -> None:
    """Of two that have a word, the one that asked for it comes first."""
    home.chat("answer", {**session(), "requests": [answered("What is in the box", "One needle lies in there")]})
    home.chat("request", {**session(), "requests": [answered("One needle lies in there", "What is in the box")]})
    chats = Chats(database, home.sources())
    assert [hit.session.session_id for hit in (await chats.search("needle")).items] == ["request", "answer"]
    await chats.close()


async def test_everything_can_be_read_and_indexed_ahead(home: Home, chats: Chats) -> None:
    """With progress, for a person who waits."""
    for number in range(3):
        home.chat(f"s{number}", session("one", "two"))
    seen: list[tuple[int, int]] = []
    assert await chats.read_all(lambda done, total: seen.append((done, total))) == 3
    assert seen == [(3, 3), (6, 6)]
