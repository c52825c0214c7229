"""What a search finds, in which order, and how it is shown."""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memory.clock import Clock
from memory.consistency import assert_consistent
from memory.corpus import CORPUS, write_corpus
from pegboard.result import ToolErrorCode, ToolFailure, as_result
from pegboard.storage import open_storage
from pegboard.storage.database import Database, DatabaseConnection
from pegboard.toolsets.memory.fulltext import Fields
from pegboard.toolsets.memory.memories import Memories, MemoryHit
from pegboard.toolsets.memory.query import Operator, split
from pegboard.toolsets.memory.saved import Saved
from pegboard.toolsets.memory.search import WINDOW
from pegboard.toolsets.page import Page

pytestmark = pytest.mark.anyio

STRIPE, CHARGE = "shop:billing:decision:use-stripe", "shop:billing:bug:double-charge"
SESSIONS, SYNONYMS = "shop:auth:design:sessions", "shop:search:experiment:synonyms"
DEPLOYS, JAPANESE = "shop:ops:constrained:deploys", "shop:i18n:設計:日本語"
UMLAUTS, KEBAB = "shop:i18n:bug:umlauts", "shop:ui:assumption:kebab"


def found(page: Page[MemoryHit]) -> list[str]:
    """The keys of a page, which has all there is."""
    assert page.total == len(page.items)
    return [hit.key for hit in page.items]


@pytest.fixture
async def shop(memories: Memories) -> Memories:
    """The corpus, written."""
    await write_corpus(memories)
    return memories


# Questions in plain words

QUESTIONS = [
    ("stripe", STRIPE),
    ("how do we take payment?", STRIPE),
    ("refunding", STRIPE),
    ("settle", STRIPE),
    ("Which customer was charging?", CHARGE),
    ("authentication", SESSIONS),
    ("authent", SESSIONS),
    ("idemp", CHARGE),
    ("kube", DEPLOYS),
    ("sesions", SESSIONS),
    ("strpie", STRIPE),
    ("stipe", STRIPE),
    ("strippe", STRIPE),
    ("kubernetse", DEPLOYS),
    ("kubarnetis", DEPLOYS),
    ("authentcaton", SESSIONS),
    ("auhtentictaion", SESSIONS),
    ("idenpotenzy", CHARGE),
    ("diktionery", SYNONYMS),
    ("ddictioonary", SYNONYMS),
    ("dctonary", SYNONYMS),
    ("請求書", JAPANESE),
    ("求書", JAPANESE),
    ("税", JAPANESE),
    ("能", JAPANESE),
    ("令和3年", JAPANESE),
    ("設計", JAPANESE),
    ("検索機能", JAPANESE),
    ("zurich", UMLAUTS),
    ("Zürich", UMLAUTS),
    ("ZU\u0308RICH", UMLAUTS),
    ("strasse", UMLAUTS),
    ("facade naive", UMLAUTS),
    ("muller", UMLAUTS),
    ("GitHub", DEPLOYS),
    ("github", DEPLOYS),
    ("git_hub", DEPLOYS),
    ("parse http request", DEPLOYS),
    ("parse_http_request", DEPLOYS),
    ("parse-http-request", DEPLOYS),
    ("ParseHTTPRequest", DEPLOYS),
    ("readConfigFile", DEPLOYS),
    ("order status page", KEBAB),
    ("orderStatusPage", KEBAB),
    ("use-stripe", STRIPE),
    ("double-charge", CHARGE),
    ("to be or not to be", KEBAB),
]


async def test_questions_find_what_they_are_about(shop: Memories) -> None:
    """Stems, beginnings, one and two wrong letters, Chinese characters, accents and names, each first."""
    missed = [
        query for query, right in QUESTIONS if [hit.key for hit in (await shop.search(query)).items][:1] != [right]
    ]
    assert missed == []


async def test_names_are_found_however_they_are_written(memories: Memories) -> None:
    """A name written as one word finds the one that has capitals or dashes, and the other way round."""
    ways = {"a": "gRPC on iOS", "b": "grpc on ios", "c": "OAuth", "d": "oauth", "e": "e-mail", "f": "email"}
    ways |= {"g": "see getUserById()", "h": "getuserbyid"}
    for key, text in ways.items():
        await memories.add(f"note-{key}", text=text)
    for queries, right in [
        (("grpc", "gRPC", "GRPC", "ios", "iOS"), {"note-a", "note-b"}),
        (("oauth", "OAuth"), {"note-c", "note-d"}),
        (("email", "e-mail", "eMail"), {"note-e", "note-f"}),
        (("getuserbyid", "getUserById", "get_user_by_id"), {"note-g", "note-h"}),
    ]:
        for query in queries:
            assert right <= set(found(await memories.search(query)))
            assert right <= set(found(await memories.fulltext([query])))


async def test_an_edit_teaches_new_spellings(memories: Memories) -> None:
    """A word that only its ending tells from the one before is known by its beginning, too."""
    await memories.add("a", text="connect")
    await memories.update("a", text="connecting")
    assert found(await memories.search("connectin")) == ["a"]
    assert found(await memories.search("connectingg")) == ["a"]


async def test_nothing_is_an_answer(shop: Memories) -> None:
    """Words that nobody wrote, punctuation and blanks find nothing and are no error."""
    for query in ("zzzzqqqq xxyyzz", "?!", "   ", "", "🎉", "\u202e"):
        page = await shop.search(query)
        assert (list(page.items), page.total) == ([], 0)
        assert found(await shop.fulltext([query])) == []
    assert found(await shop.fulltext([])) == []


async def test_forgotten_words_are_not_guessed(memories: Memories) -> None:
    """A word that only a deleted memory had leads nowhere, not even misspelt, and comes back with another memory."""
    await memories.add("a", text="xylophone")
    await memories.add("b", text="piano")
    await memories.delete("a")
    for query in ("xylophone", "xylo", "xylophome"):
        assert found(await memories.search(query)) == []
    await memories.add("c", text="xylophones")
    for query in ("xylophone", "xylo", "xylophome"):
        assert found(await memories.search(query)) == ["c"]


async def test_nothing_is_left_of_forgotten_words(memories: Memories, database: Database) -> None:
    """A secret is in no table after its memory is deleted, changed or replaced; what others wrote stays."""
    secret = "hunter2 correcthorsebattery Geheimnisträger getSecretToken 火车票 happily"
    await memories.add("other", text="happy horses, in another namespace", namespace="other")
    await memories.add("stays", text="happy battery")
    before = await rows_of_words(database)
    await memories.add("a", "secret", secret)
    await memories.delete("a")
    assert await rows_of_words(database) == before
    for key in ("a", "b"):
        await memories.add(key, secret)
    await memories.update("a", summary="battery")
    await memories.add("b", "happy", replace=True)
    await assert_consistent(database)
    await memories.delete("a")
    await memories.delete("b")
    assert await rows_of_words(database) == before
    await assert_consistent(database)


async def rows_of_words(database: Database) -> list[list[tuple[Any, ...]]]:
    """Every word that the tables hold, and how each is spelt."""

    def work(connection: DatabaseConnection) -> list[list[tuple[Any, ...]]]:
        words = connection.rows("SELECT space, word, documents FROM memory_words ORDER BY space, word")
        spelt = connection.rows("SELECT space, word, term FROM memory_spelt ORDER BY space, word")
        return [[*words], [*spelt]]

    return await database.read(work)


# Keywords

KEYWORDS: list[tuple[Sequence[str], Operator, set[str]]] = [
    (["stripe"], "OR", {STRIPE}),
    (["stripe", "redis"], "OR", {STRIPE, SESSIONS}),
    (["stripe", "redis"], "AND", set()),
    (["stripe", "refunds"], "AND", {STRIPE}),
    (["stripe", "nowhere"], "AND", set()),
    (["stripe", "nowhere"], "OR", {STRIPE}),
    (["billing"], "AND", {STRIPE, CHARGE}),
    (["billing", "card"], "AND", {CHARGE}),
    (["charged the card"], "OR", {CHARGE}),
    (["card the charged"], "OR", set()),
    (["refresh token"], "OR", {SESSIONS}),
    (["token refresh"], "OR", set()),
    (["invoices refunds"], "OR", set()),
    (["to be or not to be"], "OR", {KEBAB}),
    (["of it is to be"], "AND", {KEBAB}),
    (["github actions"], "OR", {DEPLOYS}),
    (["GitHub Actions"], "OR", {DEPLOYS}),
    (["parse http request"], "OR", {DEPLOYS}),
    (["parseHttpRequest and read_config_file"], "OR", {DEPLOYS}),
    (["parsehttprequest"], "OR", {DEPLOYS}),
    (["order-status-page"], "OR", {KEBAB}),
    (["refunding"], "OR", {STRIPE}),
    (["str"], "OR", set()),
    (["stirpe"], "OR", set()),
    (["請求書は令和3年度"], "OR", {JAPANESE}),
    (["3年"], "OR", {JAPANESE}),
    (["令和3年"], "OR", {JAPANESE}),
    (["和3"], "OR", {JAPANESE}),
    (["年"], "OR", {JAPANESE}),
    (["能", "税率"], "AND", {JAPANESE}),
    (["書請"], "OR", set()),
    (["zürich"], "OR", {UMLAUTS}),
    (["...", "stripe"], "AND", {STRIPE}),
    (["shop"], "AND", set(CORPUS)),
]


async def test_keywords_find_exactly_what_has_them(shop: Memories) -> None:
    """AND, OR and phrases over key, summary and text, in the words' own forms but without guesses."""
    for words, operator, right in KEYWORDS:
        assert (words, operator, set(found(await shop.fulltext(words, operator)))) == (words, operator, right)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stripe, double charge", ["stripe", "double charge"]),
        ("stripe", ["stripe"]),
        ('"charged, twice"', ["charged, twice"]),
        ('stripe, "charged, twice" ,redis', ["stripe", "charged, twice", "redis"]),
        ('the "charged, twice" bug, b', ["the  charged, twice  bug", "b"]),
        ('"unclosed, b', ["unclosed", "b"]),
        (" , ,, ", []),
        ('""', []),
        ("請求書, 税", ["請求書", "税"]),
    ],
)
def test_keywords_in_one_text_are_parted_by_commas(text: str, words: list[str]) -> None:
    """What stands in quotes stays together; blanks and empty keywords fall away."""
    assert split(text) == words


# Order, pages, relevance


async def pages(memories: Memories, query: str, limit: int) -> list[MemoryHit]:
    """Every page of a search, one after the other."""
    hits: list[MemoryHit] = []
    while True:
        page = await memories.search(query, limit, len(hits))
        hits += page.items
        if len(hits) >= page.total or not page.items:
            assert len(hits) == page.total
            return hits


async def test_relevance_never_rises(shop: Memories) -> None:
    """It is between 0 and 1, larger for what fits better, over everything that is found."""
    for query, _ in QUESTIONS:
        relevances = [hit.relevance for hit in (await shop.search(f"{query} shop")).items]
        assert relevances == sorted(relevances, reverse=True)
        assert all(0 < relevance <= 1 for relevance in relevances)
    best, *rest = (await shop.search("stripe payments shop")).items
    assert best.key == STRIPE
    assert all(hit.relevance < best.relevance for hit in rest)
    exact = (await shop.search("Payments run through Stripe")).items[0].relevance
    assert exact > (await shop.search("Payments run through Stripe and elephants")).items[0].relevance


async def test_pages_make_the_whole(memories: Memories) -> None:
    """Pages of any length together have everything once, in one order, also beyond what is ranked exactly."""
    number = WINDOW + 60
    for n in range(number):
        await memories.add(f"note:{n:03}", "common " * (n % 3), f"needle {'hay ' * (n % 7)}{'needle ' * (n % 5)}")
    whole = await pages(memories, "needle common", 100)
    keys = [hit.key for hit in whole]
    assert len(set(keys)) == len(keys) == number
    relevances = [hit.relevance for hit in whole]
    assert relevances == sorted(relevances, reverse=True)
    assert all(0 < relevance <= 1 for relevance in relevances)
    for limit in (7, 64):
        assert await pages(memories, "needle common", limit) == whole
    for offset in (0, WINDOW - 3, WINDOW, WINDOW + 1, number - 2, number, number + 5, 2**40):
        page = await memories.search("needle common", 5, offset)
        assert list(page.items) == whole[offset : offset + 5]
        assert (page.total, page.limit, page.offset) == (number, 5, offset)
    counted = await memories.fulltext(["needle", "hay"], "AND")
    assert counted.total == sum(1 for n in range(number) if n % 7)


async def test_pages_hold_where_words_are_common(memories: Memories, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where so many memories have a word that only some are ranked, pages still have everything once."""
    monkeypatch.setattr("pegboard.toolsets.memory.query._MOST_CANDIDATES", 40)
    for n in range(WINDOW + 40):
        await memories.add(f"note:{n:03}", "common", "rare" if n % 10 == 0 else "frequent" if n % 2 else "")
    whole = await pages(memories, "common rare frequent", 100)
    assert len({hit.key for hit in whole}) == len(whole) == WINDOW + 40
    relevances = [hit.relevance for hit in whole]
    assert relevances == sorted(relevances, reverse=True)
    assert await pages(memories, "common rare frequent", 13) == whole
    assert "rare" in whole[0].excerpt
    both = await pages(memories, "common frequent", 50)
    assert len({hit.key for hit in both}) == len(both) == WINDOW + 40


# Excerpts


def marked(hit: MemoryHit) -> list[str]:
    """What is marked in an excerpt."""
    return re.findall("<mark>(.*?)</mark>", hit.excerpt)


async def only(shop: Memories, *words: str) -> MemoryHit:
    """The one memory that has a keyword."""
    (hit,) = (await shop.fulltext(words, "AND")).items
    return hit


async def test_excerpts_are_marked_where_the_words_are(shop: Memories) -> None:
    """In the text, else in the summary, else in the key; other forms, accents and Chinese characters too."""
    assert marked(await only(shop, "refund")) == ["Refunds"]
    assert marked(await only(shop, "payment")) == ["Payments"]
    assert marked(await only(shop, "experiment")) == ["experiment"]
    assert (await only(shop, "experiment")).excerpt == "shop:search:<mark>experiment</mark>:synonyms"
    assert marked(await only(shop, "zurich")) == ["Zürich"]
    assert marked(await only(shop, "電子化")) == ["電子化"]
    assert marked(await only(shop, "税")) == ["税"]
    assert marked(await only(shop, "github")) == ["GitHub"]
    assert marked(await only(shop, "http")) == ["Http"]
    assert marked(await only(shop, "parse_http_request")) == ["parseHttpRequest"]
    assert marked((await shop.search("idempotensy")).items[0]) == ["Idempotency"]
    assert marked((await shop.search("kube")).items[0]) == ["Kubernetes"]


async def test_a_phrase_is_marked_where_it_is(memories: Memories) -> None:
    """Not where only one of its words stands, however early."""
    await memories.add("a", "The phrase is: to the moon", "The text is about something else, to be sure.")
    await memories.add("b", "", "to begin with, the " + "filler words " * 60 + "take me to the moon please")
    hits = {hit.key: hit for hit in (await memories.fulltext(["to the moon"])).items}
    assert hits["a"].excerpt == "<mark>The</mark> phrase is: <mark>to</mark> <mark>the</mark> <mark>moon</mark>"
    assert "<mark>to</mark> <mark>the</mark> <mark>moon</mark> please" in hits["b"].excerpt


async def test_excerpts_are_short(memories: Memories) -> None:
    """A few lines around the words, with dots where something was left out, without line ends."""
    await memories.add("a", "s" * 3000, "before\n" * 2000 + "the needle\n" + "after\n" * 2000)
    await memories.add("b", "needle " * 500, "needle" * 5000)
    for hit in (await memories.search("needle")).items:
        assert len(re.sub("</?mark>", "", hit.excerpt)) < 400
        assert "\n" not in hit.excerpt
        assert "<mark>needle" in hit.excerpt
    (hit,) = (await memories.search("before")).items
    assert hit.excerpt.endswith("…")
    (hit,) = (await memories.fulltext(["the needle"])).items
    assert hit.excerpt.startswith("…")


async def test_a_phrase_is_shown_in_order(memories: Memories) -> None:
    """An excerpt has the phrase that was asked for, not its words somewhere."""
    filler = "card again, some words that say nothing of it. " * 30
    await memories.add("a", text=f"again the card the charge {filler} It charged the card again. {filler}")
    (hit,) = (await memories.fulltext(["charged the card"])).items
    assert "<mark>charged</mark> <mark>the</mark> <mark>card</mark> again" in hit.excerpt


# Anything may be asked

NASTY = [
    '"', '""', '"a', "'", "''; DROP TABLE memories; --", "a AND b", "AND", "OR", "NOT", "NOT stripe", "a OR", "NEAR",
    "NEAR(a b, 5)", "stripe NEAR/3 refund", "*", "str*", "^stripe", "^", "(", ")", "((((", "stripe)", "key:stripe",
    "{key summary}: stripe", "+", "-stripe", "stripe + refund", "a & b", "a | b", "!stripe", "a <-> b", ":*",
    "stripe:*A",
    "\\", "\\\\", "\\'", "%", "_", "stripe%", "?", "$1", "%s", "%(name)s", "¤1", "¦", "¤1 ¦", "\x01\x02", "\x7f",
    "🎉🎉", "👩‍👩‍👧‍👦", "שלום עולם", "مرحبا", "\u202eevil", "a\u0300" * 50, "İstanbul", "ǅ",
    "ﬁne", "½", "²", "ⅷ", "ß",
    "\ufeff", "\uffff", "\U0010ffff", "a" * 100_000, "a " * 50_000, "日" * 50_000, '"' * 100_000, "(" * 100_000,
    "x,y;" * 25_000, " ".join(f"w{n}" for n in range(15_000)), "-" * 100_000, "a-" * 50_000, "aB" * 50_000,
]  # fmt: skip


async def asked(memories: Memories, text: str) -> None:
    """It answers or refuses clearly, both ways of searching."""
    acts = [
        lambda: memories.search(text),
        lambda: memories.fulltext([text]),
        lambda: memories.fulltext([text, "stripe"], "AND"),
        lambda: memories.fulltext(split(text)),
    ]
    for act in acts:
        answer = await as_result(act())
        if answer.error is None:
            assert all(0 <= hit.relevance <= 1 for hit in answer.unwrap().items)
            continue
        assert answer.error.code is ToolErrorCode.INVALID_INPUT
        assert re.match("query|keywords", answer.error.message)
        assert len(answer.error.message) < 300


async def test_no_input_breaks_the_syntax(shop: Memories) -> None:
    """Quotes, operators of both databases, backslashes, emoji, right to left, a hundred thousand characters."""
    for text in NASTY:
        await asked(shop, text)
    for text in (
        "stripe AND (refund",
        '"stripe',
        "stripe*",
        "^stripe",
        "NEAR(stripe)",
        "stripe:*",
        "-stripe",
        "(stripe)",
    ):
        assert STRIPE in [hit.key for hit in (await shop.search(text)).items]


async def test_memories_of_odd_texts_are_found_by_themselves(memories: Memories) -> None:
    """What is asked may be in the index word for word, and is then found without breaking anything either."""
    texts = [text[:20_000] for text in NASTY]
    for number, text in enumerate(texts):
        await memories.add(f"odd:{number}", text=text)
    for number, text in enumerate(texts):
        await asked(memories, text)
        page = await memories.fulltext([text], limit=100)
        assert page.total == 0 or f"odd:{number}" in [hit.key for hit in page.items]


WORDS = st.sampled_from(
    ['"', "stripe", "NEAR", "AND", "(", ")", "*", "^", ":", "\\", "'", "-", "+", "税", "é", "🎉", " "]
)


@pytest.fixture
async def standing(place: str) -> AsyncGenerator[Memories]:
    """The corpus, for many questions one after the other."""
    storage = open_storage(place)
    await storage.open()
    memories = Memories(storage.database, clock=Clock())
    await write_corpus(memories)
    yield memories
    await storage.close()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)
@given(text=st.one_of(st.text(), st.lists(WORDS).map("".join)))
@example(text="\ud800")
@example(text="stripe\0")
async def test_any_text_may_be_asked(standing: Memories, text: str) -> None:
    """Whatever hypothesis thinks of is answered or refused."""
    await asked(standing, text)


# Both databases, and many namespaces


async def test_a_namespace_answers_alike_whatever_the_others_hold(memories: Memories) -> None:
    """Other namespaces change nothing of an answer, its relevances, order, total and excerpts included."""
    await write_corpus(memories)
    queries = [query for query, _ in QUESTIONS] + ["shop", "bug design", "the of it"]
    alone = [await memories.search(query) for query in queries]
    keyed = [await memories.fulltext(words, operator) for words, operator, _ in KEYWORDS]
    for number in range(3):
        await write_corpus(memories, f"other{number}")
        for n in range(20):
            text = f"stripe {'payments ' * 20} kubernetes 請求書 sesions xylophone"
            await memories.add(f"n{n}", "stripe", text, namespace=f"other{number}")
    assert [await memories.search(query) for query in queries] == alone
    assert [await memories.fulltext(words, operator) for words, operator, _ in KEYWORDS] == keyed
    assert (await memories.search("xylophone")).total == 0


async def test_both_databases_answer_alike(tmp_path: Path, postgres_url: str) -> None:
    """The same memories give the same answers, from the first to the last, on SQLite and on PostgreSQL."""
    answers: list[list[Page[MemoryHit]]] = []
    for place in (f"sqlite:{tmp_path / 'a.db'}", postgres_url):
        storage = open_storage(place)
        await storage.open()
        memories = Memories(storage.database, clock=Clock())
        await write_corpus(memories)
        queries = [query for query, _ in QUESTIONS] + ["shop bug design", "the"]
        asking = [memories.search(query) for query in queries]
        asking += [memories.fulltext(words, operator) for words, operator, _ in KEYWORDS]
        answers.append(list(await asyncio.gather(*asking)))
        await storage.close()
    assert answers[0] == answers[1]


async def test_what_has_all_goes_before_the_many_that_have_one(memories: Memories) -> None:
    """However many those are, and in whatever order they came."""
    for number in range(80):
        await memories.add(f"alpha:alpha:{number:02}", summary="alpha", text="about alpha")
        await memories.add(f"beta:beta:{number:02}", summary="beta", text="about beta")
    await memories.add("answer", text="a long text in which there is alpha somewhere, and much later on also beta")
    assert (await memories.search("alpha beta", 1)).items[0].key == "answer"
    both = await memories.search("alpha beta gamma", 100)
    assert (both.items[0].key, both.total) == ("answer", 161)


def saved(space: str, word: str, count: int) -> list[Saved]:
    """So many memories that have a word in their text."""
    return [Saved(namespace=space, key=f"n{word[0]}:{at:03}", text=f"something about {word}") for at in range(count)]


async def test_those_that_are_alike_are_alike_relevant(memories: Memories) -> None:
    """Also behind the ones that are ranked against each other: the same words are worth the same on every page."""
    await memories.restore(saved(memories.namespace, "red", 150) + saved(memories.namespace, "blue", 150))
    await memories.add("both", text="it is red and blue")
    seen: list[MemoryHit] = []
    while len(seen) < 301:
        page = await memories.search("red blue", 100, len(seen))
        assert page.total == 301
        seen += page.items
    assert seen[0].key == "both"
    assert len({hit.key for hit in seen}) == 301
    assert len({round(hit.relevance, 9) for hit in seen[1:]}) == 1
    assert seen[0].relevance > seen[1].relevance


async def test_words_of_key_and_summary_count_more(memories: Memories) -> None:
    """Among very many that have a word somewhere, those are found that are about it."""
    await memories.restore(saved(memories.namespace, "harbour", 400))
    await memories.add("place:harbour", text="where ships are")
    await memories.add("note:ships", summary="In the harbour", text="there are many")
    found = [hit.key for hit in (await memories.search("harbour", 2)).items]
    assert found == ["place:harbour", "note:ships"]
    found = [hit.key for hit in (await memories.search("something harbour ships", 3)).items]
    assert {"place:harbour", "note:ships"} <= set(found)


def test_a_text_may_have_as_many_words_as_the_index_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    """And not one byte more."""
    monkeypatch.setattr("pegboard.toolsets.memory.fulltext._MOST_BYTES", 12)
    Fields.of("abcd", "efgh", "ijkl")
    with pytest.raises(ToolFailure, match="different words"):
        Fields.of("abcd", "efgh", "ijklm")
