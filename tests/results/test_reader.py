"""Reading on in a kept result: by records, words, paths, fields and conditions."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from pegboard import exactjson
from pegboard.result import ToolFailure
from pegboard.results.condition import parse_conditions
from pegboard.results.contents import texts_of
from pegboard.results.json_part import find_json
from pegboard.results.keeper import ResultKeeper
from pegboard.results.path import EACH, parse_path, write_path
from pegboard.results.reader import ResultQuery, ResultReader
from pegboard.storage import open_storage
from pegboard.storage.results import ResultOwner

pytestmark = pytest.mark.anyio

OWNER = ResultOwner("local")
ISSUES = [
    {
        "number": number,
        "state": "open" if number % 2 else "closed",
        "user": {"login": f"user {number % 5}", "admin": number == 7},
        "labels": [{"name": "bug"}, {"name": f"area {number % 3}"}] if number % 4 else [],
        "body": None if number == 3 else f"It crashes with code {number}",
    }
    for number in range(100)
]
DOCUMENT = {"total": 100, "data": {"items": ISSUES, "a.b": {"c/d": [1, 2]}}, "text": "line one\nline two\nline three"}
LOG = "\n".join(f"2026-11-19 {'ERROR disk full' if n % 50 == 7 else 'INFO all well'} {n}" for n in range(2000))


class Kept:
    """A reader, and what is kept of a text."""

    def __init__(self, reader: ResultReader, keeper: ResultKeeper) -> None:
        self._reader, self._keeper = reader, keeper

    async def put(self, *texts: str) -> str:
        found = texts_of({"content": [{"type": "text", "text": text} for text in texts]})
        json_part = find_json(found)
        facts: dict[str, Any] = {} if json_part is None else {"start": json_part.start, "end": json_part.end}
        if json_part is not None and json_part.records is not None:
            facts["path"] = json_part.path
        kept = await self._keeper.keep(found.whole, facts, OWNER)
        assert kept is not None
        return kept

    async def read(self, kept: str, cap: int = 5000, **wanted: Any) -> dict[str, Any]:
        return await self._reader.read(ResultQuery(kept, **wanted), OWNER, cap)


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncGenerator[Kept]:
    """On a file of its own."""
    storage = open_storage(f"sqlite:{tmp_path}/kept.db")
    await storage.open()
    keeper = ResultKeeper(storage.results)
    yield Kept(ResultReader(keeper), keeper)
    await keeper.close()
    await storage.close()


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_records_come_in_pages_that_fit(kept: Kept) -> None:
    """Each page says where the next begins; together they are all records."""
    document = await kept.put(json.dumps(DOCUMENT))
    found, offset, pages = [], 0, 0
    while offset is not None:
        page = await kept.read(document, 2000, offset=offset)
        assert (page["unit"], page["offset"], page["total"]) == ("records", offset, 100)
        assert len(json.dumps(page)) <= 2000
        found += page["records"]
        offset, pages = page["next"], pages + 1
    assert found == ISSUES
    assert pages > 5
    some = await kept.read(document, offset=98, limit=1)
    assert (some["records"], some["next"]) == ([ISSUES[98]], 99)
    assert (await kept.read(document, offset=1000))["records"] == []


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_conditions_words_and_fields_choose(kept: Kept) -> None:
    """The number of each chosen record stands beside it."""
    document = await kept.put(json.dumps(DOCUMENT))
    chosen = await kept.read(document, where='state = open and number > 90 and user.login != "user 1"')
    assert (chosen["at"], chosen["total"]) == ([93, 95, 97, 99], 4)
    assert chosen["records"] == [ISSUES[at] for at in chosen["at"]]
    chosen = await kept.read(document, query="CODE 42", fields=["number", "labels[].name", "user.login"])
    assert chosen["at"] == [42]
    assert chosen["records"] == [{"number": 42, "labels[].name": ["bug", "area 0"], "user.login": "user 2"}]
    chosen = await kept.read(document, path="data.items[].user", where="admin = true")
    assert chosen["records"] == [{"login": "user 2", "admin": True}]
    assert (await kept.read(document, query="nobody says this"))["total"] == 0
    chosen = await kept.read(document, query="crashes", where="labels.name = bug", offset=2, limit=2)
    assert (chosen["at"], chosen["next"], chosen["total"]) == ([5, 6], 4, 74)


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_paths_lead_to_any_value(kept: Kept) -> None:
    """To a list, its items are read; to a text, its characters; to anything else, its value."""
    document = await kept.put(json.dumps(DOCUMENT))
    assert (await kept.read(document, path="/data/a.b/c~1d"))["records"] == [1, 2]
    assert (await kept.read(document, path="total"))["value"] == 100
    assert (await kept.read(document, path="data.items[7].user"))["value"] == ISSUES[7]["user"]
    part = await kept.read(document, path="text", offset=5, limit=8)
    assert (part["text"], part["next"], part["total"]) == ("one\nline", 13, 28)
    assert (await kept.read(document, path="text", query="two"))["hits"] == [
        {"offset": 14, "line": 2, "text": "line two"}
    ]
    whole = await kept.read(document, path="", limit=10)
    assert (whole["text"], whole["unit"]) == (json.dumps(DOCUMENT)[:10], "characters")


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_numbers_of_items_are_digits(kept: Kept) -> None:
    """In a pointer, too, also where it is a field or in a condition; a power is no number."""
    document = await kept.put(json.dumps(DOCUMENT))
    fields = ["number", "/labels/1/name"]
    page = await kept.read(document, fields=fields, where='"/labels/0/name" = bug', limit=1)
    assert page["records"] == [{"number": 1, "/labels/1/name": "area 1"}]
    assert (await kept.read(document, path="/data/items/7/user"))["value"] == ISSUES[7]["user"]
    for path in ("/data/items/²", "/data/items/٣", "/data/items/" + "9" * 1000, "/data/items/-1"):
        with pytest.raises(ToolFailure, match=r'^path: "data\.items" '):
            await kept.read(document, path=path)


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_a_record_larger_than_a_page_is_told_with_its_path(kept: Kept) -> None:
    """And read with that."""
    large = [{"n": 1}, {"n": 2, "body": "long " * 1000}, {"n": 3}]
    document = await kept.put(json.dumps({"rows": large}))
    assert (await kept.read(document, 1000))["records"] == [{"n": 1}]
    told = await kept.read(document, 1000, offset=1)
    assert told["records"] == [{"tooLarge": 5020, "path": "rows[1]", "advice": "read it with this path"}]
    assert told["next"] == 2
    text, offset = "", 0
    while offset is not None:
        page = await kept.read(document, 1000, path="rows[1]", offset=offset)
        text, offset = text + page["text"], page["next"]
    assert json.loads(text) == large[1]
    assert (await kept.read(document, 1000, offset=1, fields=["n"]))["records"] == [{"n": 2}, {"n": 3}]


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_of_a_large_record_the_list_in_it_is_told(kept: Kept) -> None:
    """With a path by which it is read by records."""
    regions = [
        {"region": name, "customers": [{"id": f"{name}-{number}", "open": number % 9} for number in range(60)]}
        for name in ("north", "south", "east")
    ]
    document = await kept.put(json.dumps({"data": {"regions": regions}}))
    (told,) = (await kept.read(document, 1500))["records"]
    path = "data.regions[].customers[]"
    assert (told["path"], told["advice"]) == (
        "data.regions[0]",
        f'read it with this path, or by records: path="{path}"',
    )
    found = await kept.read(document, path=path, where="id contains south and open = 8", fields=["id"])
    assert found["records"] == [{"id": f"south-{number}"} for number in range(60) if number % 9 == 8]
    named = {f"region {number}": {"of.it": regions[0]["customers"], "n": number} for number in range(20)}
    (told,) = (await kept.read(await kept.put(json.dumps(named)), 1500, offset=7))["records"]
    assert told["advice"] == "read it with this path"
    dotted = {f"region {number}": {"inner": regions[0]["customers"], "n": number} for number in range(20)}
    (told,) = (await kept.read(await kept.put(json.dumps(dotted)), 1500, offset=7))["records"]
    assert told["advice"] == 'read it with this path, or by records: path="region 7.inner[]"'


async def test_words_in_a_text_have_their_places(kept: Kept) -> None:
    """The line, and the place in the whole; what has all words, else what has most."""
    log = await kept.put(LOG)
    found = await kept.read(log, query="error FULL", limit=3)
    assert (found["unit"], found["total"], found["next"]) == ("hits", 40, 3)
    for number, hit in enumerate(found["hits"]):
        assert hit["line"] == 8 + 50 * number
        assert LOG[hit["offset"] :].startswith("ERROR disk full")
        assert "disk full" in hit["text"]
    most = await kept.read(log, query="error nowhere", limit=1)
    assert (most["total"], most["message"]) == (40, "No place has all of the words; these have most of them.")
    one_line = await kept.put("x" * 700_000 + "needle" + "y" * 700_000)
    (hit,) = (await kept.read(one_line, query="needle"))["hits"]
    assert hit["offset"] == 700_000


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ({"path": "data.nobody"}, '"data" has no "nobody"; it has items, a.b'),
        ({"path": "data.items[500]"}, '"data.items" has 100 items, and no number 500'),
        ({"path": "data.items.user"}, '"data.items" is a list: say which item, as in [0], or each, as in []'),
        ({"path": "total.x"}, '"total" is no object'),
        ({"path": "total[]"}, 'what stands at "total" is no list'),
        ({"path": "a..b"}, 'cannot be read from "..b" on'),
        ({"path": "/a~2"}, "has a ~ that stands for nothing"),
        ({"where": "state"}, 'after "state" stands no operator'),
        ({"where": "state is open"}, '"is" is no operator'),
        ({"where": "state ="}, 'after "=" stands no value'),
        ({"where": "state = open or number = 1"}, 'after "open" stands no "and"'),
        ({"where": "  "}, "it is empty"),
        ({"where": 'a = "x'}, 'it cannot be read from ""x" on'),
        ({"fields": ["a[x]"]}, 'cannot be read from "[x]" on'),
        ({"query": "  "}, "query must have 1 to 20 words"),
        (
            {"where": "sate = open"},
            'where: no record has "sate"; there are state, number, user.login, user.admin',
        ),
        ({"where": "sate != open"}, 'where: no record has "sate"; there are state, '),
        ({"where": "sate < 5"}, 'where: no record has "sate"; there are state, '),
        ({"where": "sate contains 5"}, 'where: no record has "sate"; there are state, '),
        ({"where": "number < 0 and sate = open"}, 'no record has "sate"; there are state, '),
        ({"where": "login = x"}, 'where: no record has "login"; there are user.login, '),
        ({"where": "labels.nam = x"}, 'where: no record has "labels.nam"; there are labels[].name, '),
        ({"fields": ["nope"]}, 'fields: no record has "nope"; there are number, state, '),
        ({"fields": ["number", "sate"]}, 'fields: no record has "sate"; there are state, '),
        (
            {"where": "state > 5"},
            '"state" is a text that is no number, such as "closed"; to compare texts, write state > \'5\'',
        ),
        (
            {"where": 'number > "5"'},
            '"number" is a number, such as 0; write the number to compare with, without quotes',
        ),
        ({"where": "user > 5"}, '"user" is neither a number nor a text, such as {"login":"user 0"'),
        ({"where": "> 5"}, "a record is neither a number nor a text, such as {"),
        ({"where": "a = 1", "path": ""}, 'path="" reads everything as a text: leave path out'),
    ],
)
async def test_what_cannot_be_read_says_why(kept: Kept, wanted: dict[str, Any], problem: str) -> None:
    """And what there is instead."""
    document = await kept.put(json.dumps(DOCUMENT))
    with pytest.raises(ToolFailure) as raised:
        await kept.read(document, **wanted)
    assert problem in str(raised.value)


async def test_a_text_has_no_records(kept: Kept) -> None:
    """Which is said to whoever asks for some."""
    log = await kept.put(LOG)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"where": "a = 1"}, "is a text: find words in it with query, go on with offset"),
        ({"fields": ["a"]}, "is a text: find words in it with query, go on with offset"),
        ({"path": "a"}, "is a text, so that there is no path in it"),
    ]
    for wanted, problem in refused:
        with pytest.raises(ToolFailure, match=problem):
            await kept.read(log, **wanted)
    value = await kept.put(json.dumps({"words": "word " * 100}))
    with pytest.raises(ToolFailure, match="has no list of them: say with path what to read, or use query"):
        await kept.read(value, where="a = 1")


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_records_that_are_no_objects(kept: Kept) -> None:
    """A condition without a field is about the records themselves."""
    numbers = await kept.put(json.dumps(list(range(3000))))
    assert (await kept.read(numbers, where="> 2990 and != 2995 and <= 2997"))["records"] == [
        *range(2991, 2995),
        2996,
        2997,
    ]
    with pytest.raises(ToolFailure, match='no record has "price", the records are numbers: write where without a fie'):
        await kept.read(numbers, where="price > 5")
    words = await kept.put(json.dumps(["a bug", "b", "c"] * 100))
    assert (await kept.read(words, where="contains bug", limit=2))["at"] == [0, 3]
    rows = await kept.put(json.dumps([[number, f"name {number}"] for number in range(500)]))
    assert (await kept.read(rows, where="[0] > 497", fields=["[1]"]))["records"] == [
        {"[1]": "name 498"},
        {"[1]": "name 499"},
    ]


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_a_field_that_is_empty_everywhere_is_none_that_is_missing(kept: Kept) -> None:
    """Below an empty list or a null there could be anything; no records have no fields."""
    empty = await kept.put(json.dumps([{"labels": [], "user": None, "n": number} for number in range(300)]))
    for where in ("labels.name = bug", "user.login = ada", "user.age > 5"):
        assert (await kept.read(empty, where=where))["total"] == 0
    assert (await kept.read(empty, fields=["user.login", "n"], limit=1))["records"] == [{"n": 0}]
    rare = await kept.put(json.dumps([*({"n": number} for number in range(300)), {"n": 300, "rare": 1}]))
    assert (await kept.read(rare, fields=["rare"], limit=1))["records"] == [{}]
    assert (await kept.read(rare, where="rare = 1"))["at"] == [300]
    none = await kept.put(json.dumps({"rows": []}))
    assert (await kept.read(none, path="rows", where="a = 1"))["total"] == 0


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_words_that_stand_in_no_record_are_told(kept: Kept) -> None:
    """As they are for a text."""
    document = await kept.put(json.dumps(DOCUMENT))
    most = await kept.read(document, query="crashes nowhere", limit=1)
    assert (most["total"], most["message"]) == (99, "No record has all of the words; these have most of them.")
    assert "message" not in await kept.read(document, query="crashes with", limit=1)


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_members_of_an_object_that_are_alike_are_records(kept: Kept) -> None:
    """With their names beside them; they are found, chosen and paged like items of a list."""
    users = {f"user/{number}": {"age": number, "name": f"name {number}"} for number in range(2000)}
    document = await kept.put(json.dumps({"users": users, "total": 2000}))
    found: dict[str, Any] = {}
    offset = 0
    while offset is not None:
        page = await kept.read(document, offset=offset)
        assert len(exactjson.dump(page)) <= 5000
        assert page["total"] == 2000
        found |= dict(zip(page["keys"], page["records"], strict=True))
        offset = page["next"]
    assert found == users
    chosen = await kept.read(document, where="age > 1997", fields=["name"])
    assert chosen["records"] == [{"name": "name 1998"}, {"name": "name 1999"}]
    assert (chosen["keys"], chosen["at"]) == (["user/1998", "user/1999"], [1998, 1999])
    assert (await kept.read(document, path="/users/user~17"))["value"] == users["user/7"]
    large = await kept.put(json.dumps({f"k{number}": {"body": "x" * 3000, "n": number} for number in range(20)}))
    (told,) = (await kept.read(large, 2000))["records"]
    assert told["path"] == "k0"
    few = {"a": {"n": 1}, "b": {"n": 2}}
    assert (await kept.read(await kept.put(json.dumps({"few": few})), path="few"))["value"] == few


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_words_are_looked_for_in_names_of_records_too(kept: Kept) -> None:
    """One word may be in the name, and another in the value."""
    versions = {f"dep-{number}": f"^{number % 7}.0.0" for number in range(3000)}
    document = await kept.put(json.dumps({"name": "app", "dependencies": versions}))
    found = await kept.read(document, query="DEP-2222")
    assert (found["keys"], found["records"], found["total"]) == (["dep-2222"], ["^3.0.0"], 1)
    found = await kept.read(document, query="dep-2222 ^3.0")
    assert (found["keys"], found["at"]) == (["dep-2222"], [2222])


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_words_in_quotes_stand_together(kept: Kept) -> None:
    """In a text, and in a value or a name of a record; what JSON writes around them is none of it."""
    log = await kept.put(LOG)
    assert (await kept.read(log, query="'ERROR disk' full"))["total"] == 40
    assert "message" in await kept.read(log, query="'disk ERROR' full")
    document = await kept.put(json.dumps([{"user name": f'say "hi {number}"', "n": number} for number in range(300)]))
    for query, at in (
        ('"hi 42"', [42]),
        ("'say \"hi 7\"'", [7]),
        ('42 "user name"', [42, 142, 242]),
        ('"name n"', []),
        ('":', []),
    ):
        assert (await kept.read(document, query=query))["at"] == at


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
@pytest.mark.parametrize("text", [LOG, json.dumps(DOCUMENT)], ids=["text", "records"])
async def test_what_has_only_some_of_the_words_fills_no_page(kept: Kept, text: str) -> None:
    """A few come, behind the message that says what they are; the others on further pages."""
    document = await kept.put(text)
    unit, words = ("hits", "all zzz") if text == LOG else ("records", "zzz crashes")
    page = await kept.read(document, query=words)
    assert list(page)[:4] == ["id", "unit", "message", unit]
    assert (len(page[unit]), page["next"], page["total"] > 90) == (5, 5, True)
    more = await kept.read(document, query=words, offset=5)
    assert (len(more[unit]), more["next"], more["total"]) == (5, 10, page["total"])
    assert len((await kept.read(document, query=words, limit=2))[unit]) == 2
    assert len((await kept.read(document, query=words.replace("zzz", "")))[unit]) > 5


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_texts_beside_the_records_that_were_not_searched_are_told(kept: Kept) -> None:
    """Where they are searched, nothing is said."""
    document = await kept.put(json.dumps(DOCUMENT), "a needle beside it")
    told = 'Other texts of the result were not searched: path="" searches all of it.'
    for query, said in (
        ("needle", told),
        ("'code 42'", told),
        ("crashes zzz", f"No record has all of the words; these have most of them. {told}"),
    ):
        assert (await kept.read(document, query=query))["message"] == said
    assert "message" not in await kept.read(document, where="number = 42")
    found = await kept.read(document, query="needle", path="")
    assert (found["total"], "message" in found) == (1, False)


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("state = Open", "state = open"),
        ("number >= 0 and state = 'OPEN'", "state = open"),
        ("state == CLOSED and user.login = 'user 1'", "state = closed"),
        ("labels.name = Bug", "labels.name = bug"),
        ("state = op", None),
        ("labels = [1]", None),
        ("state = open and number = 2", None),
        ("state != open and state != closed", None),
        ("number = -1", None),
    ],
)
async def test_a_value_in_other_letters_is_told(kept: Kept, where: str, said: str | None) -> None:
    """Where a condition finds nothing for that reason alone."""
    document = await kept.put(json.dumps(DOCUMENT))
    page = await kept.read(document, where=where)
    message = None if said is None else f"= is exact, also in the case of letters: there is {said}"
    assert (page["total"], page.get("message")) == (0, message)


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
async def test_a_name_with_dots_needs_no_pointer(kept: Kept) -> None:
    """As long as its beginning is no name itself: then that is what a path means."""
    files = {f"src/mod{number}.test.py": {"lines.of": [f"line {number}"]} for number in range(80)}
    document = await kept.put(json.dumps({"files": files, "a": {"b": 1}, "a.b": 2, "x.y": 3, "x.y.z": 4}))
    assert (await kept.read(document, path="files.src/mod77.test.py.lines.of[0]"))["text"] == "line 77"
    assert (await kept.read(document, path="files.src/mod7.test.py"))["value"] == {"lines.of": ["line 7"]}
    for path, value in (("a.b", 1), ("/a.b", 2), ("x.y", 3), ("x.y.z", 4)):
        assert (await kept.read(document, path=path))["value"] == value
    whole = await kept.put(json.dumps(files))
    assert (await kept.read(whole, path="src/mod77.test.py"))["value"] == {"lines.of": ["line 77"]}
    with pytest.raises(ToolFailure, match=r'the whole has no "src/mod99"; .*as in "/a~1b\.c"$'):
        await kept.read(whole, path="src/mod99.test.py")
    rows = await kept.put(json.dumps([{"a": {"b": 1}, "a.b": 2}, {"a.b": 3}, {"a": {"b": 4}}]))
    assert (await kept.read(rows, path="[].a.b"))["records"] == [1, 4]


async def test_a_result_is_read_by_its_link_too(kept: Kept) -> None:
    """Which is what a model is given of a kept result."""
    log = await kept.put(LOG)
    assert (await kept.read(f"pegboard://result/{log}", limit=10)) == await kept.read(log, limit=10)
    with pytest.raises(ToolFailure, match='there is no result "r_none"'):
        await kept.read("pegboard://result/r_none")


@pytest.mark.scenario("results: Records, words, paths, fields and conditions are read")
@pytest.mark.parametrize(
    ("where", "holds"),
    [
        ("n = 5", True),
        ("n = 5.0", True),
        ("n = true", False),
        ("t = true", True),
        ("t = 1", False),
        ("s = 5", True),
        ('s = "5"', True),
        ("n = '5'", False),
        ("n >= 5 and n <= 5 and n < 6 and n > 4", True),
        ("n < 5", False),
        ("s < 6", True),
        ("day >= 2026-11-01", True),
        ("list = b", True),
        ("list != b", False),
        ("list contains b", True),
        ("list contains z", False),
        ("n > 4.99", True),
        ("price > 4", True),
        ("price > 100", False),
        ("price = 4.5", True),
        ("price != 4.5", False),
        ("price = '4.5'", False),
        ('price > "100"', True),
        ("big > 12345678901234567890123456788", True),
        ("big > 12345678901234567890123456789", False),
        ("big = 12345678901234567890123456789", True),
        ("number > 12345678901234567890123456788", True),
        ("number >= 12345678901234567890123456790", False),
        ("exact > 0.1000000000000000055511151231257826", True),
        ("exact > 0.1000000000000000055511151231257827", False),
        ("n < 1e999", True),
        ("word > 5", False),
        ("t > 0", False),
        ("labels contains BUG", True),
        ("labels contains crash", False),
        ("labels contains 17", True),
        ("more contains needle", True),
        ("more contains in", False),
        ("contains = x", True),
        ("contains contains x", True),
        ("contains needle", True),
        ("contains nowhere", False),
        ("word contains RAS", True),
        ("missing = 1", False),
        ("missing != 1", True),
        ("nothing = null", True),
        ("deep.er[0].x = 1", True),
        ("deep.er[].x = 2", True),
        ("deep.er.x > 1", True),
        ("'a b' == 'c d'", True),
    ],
)
def test_conditions_compare_as_one_expects(where: str, *, holds: bool) -> None:
    """Numbers as numbers, words as words, one item of a list is enough."""
    record = {
        "n": 5,
        "t": True,
        "s": "5",
        "day": "2026-11-19",
        "list": ["a", "b"],
        "word": "crashes",
        "nothing": None,
        "deep": {"er": [{"x": 1}, {"x": 2}]},
        "a b": "c d",
        "price": "4.50",
        "big": "12345678901234567890123456789",
        "number": 12345678901234567890123456789,
        "exact": exactjson.Number("0.1000000000000000055511151231257827"),
        "labels": [{"name": "a bug", "id": 17}],
        "more": {"in": [[{"x": {"y": ["a Needle"]}}]]},
        "contains": "x",
    }
    assert all(condition.holds(record) for condition in parse_conditions(where)) == holds


@pytest.mark.parametrize("steps", [(), ("a",), ("a", 0, "b"), ("a.b", "c"), ("", "/", "~"), (0, 1), ("a", EACH, "b")])
def test_a_path_that_is_written_can_be_read(steps: tuple[str | int, ...]) -> None:
    """As names with dots, or as a pointer."""
    text = write_path(steps).replace(f"[{EACH}]", "[]")
    assert [str(step) for step in parse_path(text)] == [str(step) for step in steps]
