"""The library: prompts, resources and templates of many servers under one roof."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pegboard import pace
from pegboard.catalog import resources as module
from pegboard.catalog.resources import ResourceCatalog
from pegboard.catalog.stock import ALIAS, ServerOffer, alias_of
from pegboard.exactjson import dump, parse

pytestmark = pytest.mark.anyio
T = TypeVar("T")
ORDER = ("git", "docs", "db")


def prompt(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Says {name}.", **more}


def resource(uri: str, **more: Any) -> dict[str, Any]:
    return {"uri": uri, "name": uri, **more}


def template(uri: str, **more: Any) -> dict[str, Any]:
    return {"uriTemplate": uri, "name": uri, **more}


def library(**offers: ServerOffer) -> ResourceCatalog:
    """A library of servers in the order of the config, whatever order they were found in."""
    built = ResourceCatalog(order=lambda: ORDER)
    for server, offer in offers.items():
        put(built, server, offer)
    return built


def put(built: ResourceCatalog, server: str, offer: ServerOffer, *, prefix: bool = True) -> None:
    asyncio.run(built.put(server, offer, prefix=prefix))


def remove(built: ResourceCatalog, server: str) -> None:
    asyncio.run(built.remove(server))


def finish(steps: Generator[None, None, T]) -> T:
    """What comes of steps that are taken at once."""
    while True:
        try:
            next(steps)
        except StopIteration as over:
            return over.value


def owner(
    built: ResourceCatalog, uri: str, admits: Callable[[str], bool] | None = None, scope: str = ""
) -> tuple[str, str] | None:
    return finish(built.find_owner(uri, admits, scope))


def linked(built: ResourceCatalog, server: str, uri: str, scope: str = "") -> str:
    return finish(built.name_link(server, uri, scope))


def events(logs: list[Any]) -> list[tuple[str, str]]:
    return [(entry["event"], entry["serverName"]) for entry in logs if entry["log_level"] == "error"]


# Prompts


def test_a_prompt_is_called_server_and_prompt() -> None:
    """Its definition is the server's own but for the name, and the entry knows whose it is."""
    entries = library(
        git=ServerOffer(prompts=[prompt("commit", arguments=[{"name": "x"}], _meta={"y": 2**70})])
    ).prompts.entries
    (entry,) = entries.values()
    assert (entry.name, entry.server_name, entry.original_name) == ("git__commit", "git", "commit")
    assert entry.definition == prompt("commit", arguments=[{"name": "x"}], _meta={"y": 2**70}) | {"name": "git__commit"}
    assert list(entries) == ["git__commit"]


def test_a_server_without_prefix_keeps_its_names() -> None:
    """Of two with the same name, the earlier in the config keeps it; the other is left out and logged."""
    built = ResourceCatalog(order=lambda: ORDER)
    with capture_logs() as logs:
        put(built, "docs", ServerOffer(prompts=[prompt("ask"), prompt("tell")]), prefix=False)
        put(built, "git", ServerOffer(prompts=[prompt("ask")]), prefix=False)
    assert {name: entry.server_name for name, entry in built.prompts.entries.items()} == {"ask": "git", "tell": "docs"}
    assert events(logs) == [("catalog.entry.duplicate", "docs")]


def test_a_bare_name_that_is_another_servers_is_left_out() -> None:
    """It begins with the other one's name, or is exactly what that one has, whichever of them was there first."""
    built = ResourceCatalog(order=lambda: ORDER, max_name_length=12)
    long = "x" * 40
    put(built, "docs", ServerOffer(prompts=[prompt(long)]))
    (taken,) = built.prompts.entries
    with capture_logs() as logs:
        put(
            built,
            "git",
            ServerOffer(prompts=[prompt("db__ask"), prompt(taken), prompt("own"), prompt("git__a")]),
            prefix=False,
        )
    assert events(logs) == [("catalog.entry.duplicate", "git")] * 2
    with capture_logs() as logs:
        put(built, "db", ServerOffer(prompts=[prompt("ask")]))
    assert events(logs) == []
    owners = {name: entry.server_name for name, entry in built.prompts.entries.items()}
    assert owners == {"own": "git", "git__a": "git", taken: "docs", "db__ask": "db"}


def test_the_prefix_can_be_taken_away_and_given_back() -> None:
    """The same offer under another setting is a change."""
    built = library(git=ServerOffer(prompts=[prompt("a")]))
    put(built, "git", built.offer("git"), prefix=False)
    assert list(built.prompts.entries) == ["a"]
    put(built, "git", built.offer("git"))
    assert list(built.prompts.entries) == ["git__a"]


def test_a_prompts_name_fits_what_providers_take() -> None:
    """Too long or with odd characters it is cut and marked, and its own name is still known."""
    long, odd = "x" * 200, "what is this?"
    built = ResourceCatalog(max_name_length=32)
    put(built, "git", ServerOffer(prompts=[prompt(long), prompt(odd)]))
    names = list(built.prompts.entries)
    assert [built.prompts.entries[name].original_name for name in names] == [long, odd]
    assert all(len(name) <= 32 for name in names)


# Resources


def test_a_resource_keeps_its_uri_and_its_definition() -> None:
    """Where nobody else has it, it is passed on untouched, the very same object."""
    given = resource("file:///a", size=2**70, extra=None)
    (entry,) = library(git=ServerOffer(resources=[given])).resources.entries.values()
    assert (entry.name, entry.original_name) == ("file:///a", "file:///a")
    assert entry.definition is given


def test_of_two_with_the_same_uri_the_later_in_the_config_is_aliased() -> None:
    """Whichever of them was found first; each is found under its name, and named by its server's own URI."""
    uri = "file:///a"
    for found in (("docs", "git"), ("git", "docs")):
        built = library(**{server: ServerOffer(resources=[resource(uri, title=server)]) for server in found})
        alias = alias_of("docs", uri)
        assert alias == f"{ALIAS}docs/{uri}"
        assert list(built.resources.entries) == [uri, alias]
        assert built.resources.entries[alias].definition == resource(uri, title="docs") | {"uri": alias}
        assert (owner(built, uri), owner(built, alias)) == (("git", uri), ("docs", uri))
        assert (linked(built, "git", uri), linked(built, "docs", uri)) == (uri, alias)


def test_three_with_the_same_uri_are_three_resources() -> None:
    """Every later one has an alias of its own, in the order of the config."""
    offer = ServerOffer(resources=[resource("x://1")])
    built = library(db=offer, docs=offer, git=offer)
    assert list(built.resources.entries) == ["x://1", "pegboard://docs/x://1", "pegboard://db/x://1"]


def test_when_the_first_goes_the_next_has_the_uri() -> None:
    """Names depend on who is there, and on nothing that was before."""
    offer = ServerOffer(resources=[resource("x://1")])
    built = library(git=offer, docs=offer)
    remove(built, "git")
    assert {name: entry.server_name for name, entry in built.resources.entries.items()} == {"x://1": "docs"}
    put(built, "git", offer)
    assert owner(built, "x://1") == ("git", "x://1")


def test_a_servers_unlisted_resource_is_named_so_that_it_can_be_read() -> None:
    """Its own URI, unless another server has listed that one."""
    built = library(git=ServerOffer(resources=[resource("x://1")]))
    assert linked(built, "docs", "x://2") == "x://2"
    assert linked(built, "docs", "x://1") == "pegboard://docs/x://1"
    assert owner(built, "pegboard://docs/x://1") == ("docs", "x://1")


@pytest.mark.parametrize("uri", ["pegboard://", "pegboard://docs", "pegboard://docs/", "pegboard://nobody/x://1"])
def test_an_alias_of_nobody_or_nothing_has_no_owner(uri: str) -> None:
    """Only a server of the config and a URI of it make one."""
    assert owner(library(git=ServerOffer()), uri) is None


def test_the_order_of_lists_is_the_order_of_the_config() -> None:
    """Servers as the config has them, their entries as they sent them; one that the config lacks comes last."""
    built = library(
        stray=ServerOffer(resources=[resource("x://stray")], prompts=[prompt("s")]),
        db=ServerOffer(resources=[resource("x://b"), resource("x://a")], prompts=[prompt("z"), prompt("a")]),
        git=ServerOffer(resources=[resource("x://c")], prompts=[prompt("m")]),
    )
    assert list(built.resources.entries) == ["x://c", "x://b", "x://a", "x://stray"]
    assert list(built.prompts.entries) == ["git__m", "db__z", "db__a", "stray__s"]


# What cannot be listed


def test_duplicates_of_one_server_are_logged_and_left_out() -> None:
    """The first of them stays, whatever the kind."""
    with capture_logs() as logs:
        built = library(
            git=ServerOffer(
                prompts=[prompt("a", x=1), prompt("a", x=2)],
                resources=[resource("x://1", x=1), resource("x://1", x=2)],
                templates=[template("x://{a}", x=1), template("x://{a}", x=2)],
            )
        )
    shelves = (built.prompts, built.resources, built.templates)
    assert [[entry.definition["x"] for entry in shelf.entries.values()] for shelf in shelves] == [[1], [1], [1]]
    assert events(logs) == [("catalog.entry.duplicate", "git")] * 3


def test_a_duplicate_of_an_aliased_resource_is_left_out_too() -> None:
    """A second one under the alias is no other resource."""
    built = library(git=ServerOffer(resources=[resource("x://1")]))
    with capture_logs() as logs:
        put(built, "docs", ServerOffer(resources=[resource("x://1"), resource("x://1")]))
    assert list(built.resources.entries) == ["x://1", "pegboard://docs/x://1"]
    assert events(logs) == [("catalog.entry.duplicate", "docs")]


@pytest.mark.parametrize(
    "garbage", [None, 5, "x", [], {}, {"name": 5, "uri": 5, "uriTemplate": 5}, {"name": "", "uri": ""}]
)
def test_malformed_entries_are_logged_and_left_out(garbage: Any) -> None:
    """The good ones beside them are there."""
    with capture_logs() as logs:
        built = library(
            git=ServerOffer(
                prompts=[garbage, prompt("good")],
                resources=[garbage, resource("x://good")],
                templates=[garbage, template("x://{good}")],
            )
        )
    listed = [list(shelf.entries) for shelf in (built.prompts, built.resources, built.templates)]
    assert listed == [["git__good"], ["x://good"], ["x://{good}"]]
    assert events(logs) == [("catalog.entry.invalid", "git")] * 3


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["name", "uri", "uriTemplate", "title"])
values = st.sampled_from(["a", "x://1", "x://{a}", "pegboard://git/x://1", "pegboard://docs/a", "\ud800"]) | json_values
entries = st.lists(st.dictionaries(keys, values) | json_values, max_size=5)
offers = st.builds(ServerOffer, entries, entries, entries)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from([*ORDER, "stray"]), offers, st.booleans()), max_size=5))
def test_no_garbage_makes_the_library_raise(found: list[tuple[str, ServerOffer, bool]]) -> None:
    """Whatever servers send, every entry is listed under the name it has, and leads to the server that sent it."""
    built = ResourceCatalog(order=lambda: ORDER)
    for server, offer, prefix in found:
        put(built, server, offer, prefix=prefix)
    for shelf in (built.prompts, built.resources, built.templates):
        assert all(name == entry.name for name, entry in shelf.entries.items())
    for name, entry in built.resources.entries.items():
        assert owner(built, name) == (entry.server_name, entry.original_name)
        assert linked(built, entry.server_name, entry.original_name) == name
    for server, _, _ in found:
        remove(built, server)
    assert all(shelf.entries == {} for shelf in (built.prompts, built.resources, built.templates))


def test_of_thousands_that_are_left_out_a_few_are_named() -> None:
    """And how many there are."""
    with capture_logs() as logs:
        library(git=ServerOffer(prompts=[None] * 1000))
    assert len(events(logs)) == 20
    assert [entry["count"] for entry in logs if entry["event"] == "catalog.entries.left_out"] == [1000]


# Templates


def test_of_a_servers_templates_the_heaviest_that_matches_is_meant() -> None:
    """The one that says most; a listed resource goes before all of them."""
    built = library(
        git=ServerOffer(templates=[template("file:///{+path}"), template("file:///logs/{name}")]),
        docs=ServerOffer(templates=[template("{+everything}")]),
    )
    uris = ("file:///a/b", "file:///logs/today", "file:///logs/old/today")
    assert [owner(built, uri) for uri in uris] == [("git", uri) for uri in uris]
    assert owner(built, "anything:else") is None


def test_an_earlier_servers_template_keeps_what_it_describes() -> None:
    """However much of it a later server's template says, or lists: that one's is reached by its alias."""
    longer = [template(f"notes://git/{letter}{{+id}}") for letter in "abcdefghijklmnopqrstuvwxyz"]
    built = library(
        docs=ServerOffer(templates=longer, resources=[resource("notes://git/plan")]),
        git=ServerOffer(templates=[template("notes://git/{id}")]),
    )
    for uri in ("notes://git/item42", "notes://git/plan"):
        assert owner(built, uri) == ("git", uri)
        assert linked(built, "docs", uri) == alias_of("docs", uri)
        assert owner(built, alias_of("docs", uri)) == ("docs", uri)
    assert list(built.resources.entries) == ["pegboard://docs/notes://git/plan"]
    assert list(built.templates.entries) == [
        "notes://git/{id}",
        *(f"pegboard://docs/{each['uriTemplate']}" for each in longer),
    ]
    # Whoever does not see the earlier one has no other that could be meant.
    assert owner(built, "notes://git/item42", lambda server: server == "docs") == ("docs", "notes://git/item42")


@pytest.mark.parametrize(
    ("earlier", "later", "is_aliased"),
    [
        ("x://h/a/{b}", "x://h/a/{c}", True),
        ("x://h/a/{b}", "x://h/{c}", True),
        ("x://h/{b}", "x://h/a/{c}", True),
        ("x://h/my docs/{b}", "x://h/my%20docs/{c}", True),
        ("x://{host}/a", "x://{host}/{b}", True),
        ("urn:{a}", "urn:isbn:{b}", True),
        ("x://h/a/{b}", "x://h/b/{c}", False),
        ("x://h/{b}", "x://other/{c}", False),
        ("x://{host}/a", "x://h/{b}", True),
        ("x://h/{b}", "x://{host}/a", True),
        ("x:{+all}", "x://h/{b}", True),
        ("x://{host}/a", "y://{host}/a", False),
        ("{+a}", "x://h/{b}", False),
        ("x://h/{b}", "{+a}", False),
    ],
)
def test_a_template_is_aliased_where_an_earlier_servers_may_describe_the_same(
    earlier: str, later: str, is_aliased: bool
) -> None:
    """One that begins otherwise, or that yields to others anyhow, stands in nobody's way."""
    built = library(git=ServerOffer(templates=[template(earlier)]), docs=ServerOffer(templates=[template(later)]))
    assert list(built.templates.entries) == [earlier, f"pegboard://docs/{later}" if is_aliased else later]


def test_a_listed_resource_keeps_its_uri_where_no_earlier_template_describes_it() -> None:
    """The same host, another shape; with many templates that begin as it does, nobody compares them all."""
    uri = "file:///home/a.txt"
    docs = ServerOffer(resources=[resource(uri)])
    built = library(git=ServerOffer(templates=[template("file:///{name}")]), docs=docs)
    assert list(built.resources.entries) == [uri]
    crowd = ServerOffer(templates=[template(f"file:///{{name}}/{number}") for number in range(5)])
    assert list(library(git=crowd, docs=docs).resources.entries) == [f"pegboard://docs/{uri}"]


def test_of_templates_that_weigh_the_same_the_earlier_in_the_config_is_meant() -> None:
    """And the same template of a later server is reached by its alias."""
    uri = "x://{a}"
    built = library(
        docs=ServerOffer(templates=[template(uri)]), git=ServerOffer(templates=[template(uri), template("x://{+b}")])
    )
    assert list(built.templates.entries) == [uri, "x://{+b}", f"pegboard://docs/{uri}"]
    assert built.templates.entries[f"pegboard://docs/{uri}"].original_name == uri
    assert owner(built, "x://1") == ("git", "x://1")
    assert owner(built, "pegboard://docs/x://1") == ("docs", "x://1")


def test_a_template_that_matches_everything_takes_nothing_from_others() -> None:
    """Without a scheme it claims only where nobody else has resources; without a host, none of an earlier server's."""
    greedy = ServerOffer(templates=[template("{+x}")])
    assert owner(library(git=greedy), "db://main/table") == ("git", "db://main/table")
    shared = library(git=greedy, db=ServerOffer(resources=[resource("db://main/one")]))
    assert owner(shared, "db://main/table") is None
    assert owner(shared, "other://x") is None
    assert owner(shared, "other://x", lambda server: server == "git") == ("git", "other://x")
    halfway = library(
        docs=ServerOffer(templates=[template("db://{host}/{x}")]),
        git=ServerOffer(resources=[resource("db://main/one")]),
    )
    assert owner(halfway, "db://main/table") is None
    assert owner(halfway, "db://elsewhere/table") == ("docs", "db://elsewhere/table")


def test_a_template_with_an_open_host_keeps_what_it_describes() -> None:
    """Of servers behind it nobody takes one of its URIs, be it by a resource, a template or a link."""
    mine, theirs = "weather://{city}/now", "weather://london/{+x}"
    listed = [resource("weather://paris/now"), resource("weather://paris")]
    built = library(
        docs=ServerOffer(resources=listed, templates=[template(theirs)]),
        git=ServerOffer(templates=[template(mine)]),
    )
    assert list(built.resources.entries) == [alias_of("docs", "weather://paris/now"), "weather://paris"]
    assert list(built.templates.entries) == [mine, alias_of("docs", theirs)]
    for uri in ("weather://paris/now", "weather://london/now", "weather://rome/now"):
        assert owner(built, uri) == ("git", uri)
        assert linked(built, "docs", uri) == alias_of("docs", uri)
    # What does not fit it is anybody's.
    assert owner(built, "weather://london/past") == ("docs", "weather://london/past")


def test_an_aliased_resource_is_found_by_its_own_uri_where_nobody_else_has_it() -> None:
    """Whoever has it first is out of sight, or has many templates that begin as it does and fit nothing."""
    uri = "x://h/one"
    built = library(git=ServerOffer(resources=[resource(uri)]), docs=ServerOffer(resources=[resource(uri)]))
    assert owner(built, uri, lambda server: server == "docs") == ("docs", uri)
    crowd = ServerOffer(templates=[template(f"x://h/{{name}}/{number}") for number in range(5)])
    built = library(git=crowd, docs=ServerOffer(resources=[resource(uri)]))
    assert list(built.resources.entries) == [alias_of("docs", uri)]
    assert owner(built, uri) == owner(built, alias_of("docs", uri)) == ("docs", uri)
    assert linked(built, "db", uri) == alias_of("db", uri)


@pytest.mark.parametrize(
    ("earlier", "later"), [("notes://Host/a", "notes://host/a"), ("notes://host/a", "NOTES://Host/a")]
)
def test_the_case_of_scheme_and_host_makes_no_other_owner(earlier: str, later: str) -> None:
    """Whoever has a resource, a template or a link first has it in every case; what is behind the host is exact."""
    alias = alias_of("docs", later)
    built = library(git=ServerOffer(resources=[resource(earlier)]), docs=ServerOffer(resources=[resource(later)]))
    assert list(built.resources.entries) == [earlier, alias]
    assert [owner(built, uri) for uri in (earlier, later, alias)] == [("git", earlier), ("git", later), ("docs", later)]
    assert owner(built, "notes://host/A") is None
    built = library(
        git=ServerOffer(templates=[template(earlier.replace("/a", "/{x}"))]),
        docs=ServerOffer(templates=[template(later.replace("/a", "/{y}"))], resources=[resource(later)]),
    )
    assert list(built.resources.entries) == [alias]
    assert list(built.templates.entries)[1].startswith("pegboard://docs/")
    for uri in (earlier, later, "Notes://HOST/b"):
        assert owner(built, uri) == ("git", uri)
        assert linked(built, "docs", uri) == alias_of("docs", uri)
    built = library()
    assert (linked(built, "git", earlier), linked(built, "docs", later)) == (earlier, alias)
    assert owner(built, later) == ("git", later)


def test_two_resources_of_one_server_may_differ_in_the_case_of_the_host() -> None:
    """There the name of a host may stand for something else: each is read as it is asked for."""
    listed = ["notes://Ada", "notes://ada", "notes://Bob"]
    built = library(git=ServerOffer(resources=[resource(uri) for uri in listed]))
    assert list(built.resources.entries) == listed
    for uri in (*listed, "notes://ADA", "notes://bob"):
        assert owner(built, uri) == ("git", uri)


def test_a_host_that_a_client_writes_in_lower_case_is_found() -> None:
    """As clients do with addresses of the web: the server is asked for what it lists."""
    built = library(git=ServerOffer(resources=[resource("HTTP://Example.com/Page")]))
    assert owner(built, "http://example.com/Page") == ("git", "HTTP://Example.com/Page")
    assert owner(built, "http://example.com/page") is None


def test_an_alias_is_one_in_every_case() -> None:
    """Of the scheme and of the server."""
    built = library(
        git=ServerOffer(resources=[resource("PEGBOARD://docs/x://1")]), docs=ServerOffer(resources=[resource("x://1")])
    )
    assert list(built.resources.entries) == ["pegboard://git/PEGBOARD://docs/x://1", "x://1"]
    for uri in ("Pegboard://Docs/x://1", "PEGBOARD://docs/x://1"):
        assert owner(built, uri) == ("docs", "x://1")
        assert linked(built, "git", uri) == alias_of("git", uri)
        assert finish(built.may_be_others(uri, "docs"))


def test_a_uri_that_fits_nothing_has_no_owner() -> None:
    """Nobody can say whose it is."""
    assert owner(library(git=ServerOffer(templates=[template("x://{a}")])), "y://1") is None
    assert owner(ResourceCatalog(), "x://1") is None


def test_templates_of_a_server_that_left_match_no_more() -> None:
    """What is not offered any more is nobody's."""
    built = library(git=ServerOffer(templates=[template("x://{a}")]))
    remove(built, "git")
    assert owner(built, "x://1") is None


def test_a_template_is_looked_for_among_the_admitted() -> None:
    """A heavier one of a server that the client does not see must not hide the one it does."""
    built = library(
        docs=ServerOffer(templates=[template("db://{+x}")]), git=ServerOffer(templates=[template("db://tables/{t}")])
    )
    uri = "db://tables/5"
    assert owner(built, uri) == ("git", uri)
    assert owner(built, uri, lambda server: server == "docs") == ("docs", uri)
    assert owner(built, uri, lambda server: server == "db") is None


# Whose else it may be


def test_what_another_server_has_is_told_from_what_nobody_has() -> None:
    """By a list, a template with a scheme, or a link; one without a scheme says nothing."""
    built = library(
        git=ServerOffer(resources=[resource("x://1")], templates=[template("x://h/{a}"), template("{+all}")]),
        docs=ServerOffer(resources=[resource("y://1")]),
    )
    linked(built, "git", "z://1", "ada")

    def may_be_others(uri: str, scope: str = "ada") -> bool:
        return finish(built.may_be_others(uri, "docs", scope))

    others = ["x://1", "x://h/2", "z://1", "pegboard://git/x://1", "pegboard://docs/y://1", "pegboard://"]
    assert [uri for uri in others if not may_be_others(uri)] == []
    assert [uri for uri in ("x://2", "y://1", "y://2") if may_be_others(uri)] == []
    assert not may_be_others("z://1", "bob")


def test_what_a_disabled_server_has_stays_its_own_until_it_is_taken_out() -> None:
    """Or until it comes back with something else."""
    order = ["git", "docs"]
    built = ResourceCatalog(order=lambda: order)

    def may_be_others(uri: str) -> bool:
        return finish(built.may_be_others(uri, "docs"))

    put(built, "git", ServerOffer(resources=[resource("x://1")], templates=[template("x://h/{a}")]))
    remove(built, "git")
    assert owner(built, "x://1") is None
    assert (may_be_others("x://1"), may_be_others("x://h/2"), may_be_others("x://2")) == (True, True, False)
    put(built, "git", ServerOffer(resources=[resource("x://2")]))
    assert (may_be_others("x://1"), may_be_others("x://2")) == (False, True)
    order.remove("git")
    remove(built, "git")
    order.append("git")
    assert not may_be_others("x://2")


# Names that look like an alias


def test_a_name_that_looks_like_an_alias_is_aliased() -> None:
    """Listed by another server, it could be taken for the resource of the one that it names."""
    hijack = "pegboard://docs/x://1"
    built = library(
        git=ServerOffer(resources=[resource(hijack), resource("x://1")], templates=[template("pegboard://docs/{a}")]),
        docs=ServerOffer(resources=[resource("x://1")]),
    )
    assert list(built.resources.entries) == [f"pegboard://git/{hijack}", "x://1", hijack]
    assert owner(built, hijack) == ("docs", "x://1")
    assert owner(built, f"pegboard://git/{hijack}") == ("git", hijack)
    assert list(built.templates.entries) == ["pegboard://git/pegboard://docs/{a}"]
    assert linked(built, "git", hijack) == f"pegboard://git/{hijack}"


@pytest.mark.parametrize(
    "uri",
    [
        "pegboard://docs/x://2",
        "pegboard://nobody/x://1",
        "pegboard://docs/",
        "pegboard://",
    ],
)
def test_a_link_that_looks_like_an_alias_is_aliased(uri: str) -> None:
    """Whoever is named by it, now or in a config to come: it leads to the server that gave it."""
    built = library(git=ServerOffer())
    assert linked(built, "git", uri) == f"pegboard://git/{uri}"
    assert owner(built, f"pegboard://git/{uri}") == ("git", uri)


# Links


def test_a_link_that_a_server_gave_leads_back_to_it() -> None:
    """No list names it, but whoever was given it can read it; what a second server gives is read under its alias."""
    built = library()
    uri = "x://linked"
    for _ in range(2):
        assert linked(built, "docs", uri) == uri
        assert linked(built, "git", uri) == alias_of("git", uri)
        assert owner(built, uri) == ("docs", uri)
        assert owner(built, alias_of("git", uri)) == ("git", uri)


def test_a_link_leads_only_whoever_was_given_it() -> None:
    """What one client was given says nothing about what another one means by the same."""
    built = library()
    assert linked(built, "docs", "x://1", "ada") == linked(built, "git", "x://1", "bob") == "x://1"
    assert owner(built, "x://1", scope="ada") == ("docs", "x://1")
    assert owner(built, "x://1", scope="bob") == ("git", "x://1")
    assert owner(built, "x://1") is None
    assert owner(built, "x://1", lambda server: server == "git", "ada") is None


def test_what_a_server_ever_offered_is_told_from_what_nobody_asked_for() -> None:
    """An empty offer is one."""
    built = library(git=ServerOffer())
    assert (built.knows("git"), built.knows("docs")) == (True, False)
    remove(built, "git")
    assert not built.knows("git")


def test_a_listed_resource_cannot_be_taken_over_by_a_link() -> None:
    """Whoever lists it has it, before and after."""
    built = library(git=ServerOffer(resources=[resource("x://1")]))
    assert linked(built, "docs", "x://1") == "pegboard://docs/x://1"
    assert owner(built, "x://1") == ("git", "x://1")
    assert linked(built, "docs", "x://2") == "x://2"
    put(built, "git", ServerOffer(resources=[resource("x://2")]))
    assert owner(built, "x://2") == ("git", "x://2")
    assert linked(built, "docs", "x://2") == "pegboard://docs/x://2"


def test_what_a_template_describes_cannot_be_taken_over_by_a_link() -> None:
    """Whoever has the template has the resource, before and after; its own links keep their names."""
    uri = "file:///docs/a"
    built = library(docs=ServerOffer(templates=[template("file:///docs/{name}")]))
    assert linked(built, "git", uri) == f"pegboard://git/{uri}"
    assert linked(built, "docs", uri) == uri
    assert owner(built, uri) == ("docs", uri)
    built = library()
    assert linked(built, "git", uri) == uri
    put(built, "docs", ServerOffer(templates=[template("file:///docs/{name}")]))
    assert owner(built, uri) == ("docs", uri)


def test_a_link_of_a_server_that_is_gone_leads_nowhere() -> None:
    """Another server's link to the same is that one's."""
    order = ["git", "docs"]
    built = ResourceCatalog(order=lambda: order)
    assert linked(built, "git", "x://1") == "x://1"
    order.remove("git")
    assert owner(built, "x://1") is None
    assert linked(built, "docs", "x://1") == "x://1"
    assert owner(built, "x://1") == ("docs", "x://1")


def test_whose_a_uri_is_goes_by_a_fixed_order() -> None:
    """Listed, then an alias, then a template, then a link, each among the servers that the client sees."""
    uri = "pegboard://db/x://1"
    built = library(git=ServerOffer(templates=[template("x://{a}")]))
    assert owner(built, uri) == ("db", "x://1")
    assert owner(built, uri, lambda server: server != "db") is None
    linked(built, "docs", "y://1")
    assert owner(built, "y://1", lambda server: server == "docs") == ("docs", "y://1")
    assert owner(built, "y://1", lambda server: server != "docs") is None
    put(built, "git", ServerOffer(resources=[resource("y://1")]))
    assert owner(built, "y://1") == ("git", "y://1")
    assert owner(built, "y://1", lambda server: server == "docs") == ("docs", "y://1")


def test_what_is_learned_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of too many links the oldest is forgotten."""
    monkeypatch.setattr(module, "_MAX_LEARNED", 3)
    built = library()
    for number in range(1, 6):
        linked(built, "git", f"x://{number}")
    assert [number for number in range(1, 6) if owner(built, f"x://{number}")] == [3, 4, 5]


def test_no_client_drives_out_what_others_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one with the most links loses its oldest."""
    monkeypatch.setattr(module, "_MAX_LEARNED", 3)
    built = library()
    linked(built, "git", "x://1", "ada")
    for number in range(100):
        linked(built, "docs", f"y://{number}", "eve")
    assert owner(built, "x://1", scope="ada") == ("git", "x://1")
    assert [number for number in range(100) if owner(built, f"y://{number}", scope="eve")] == [98, 99]


def test_a_link_that_came_again_is_young_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a server links to all the time is not forgotten for what it linked to once."""
    monkeypatch.setattr(module, "_MAX_LEARNED", 3)
    built = library()
    for number in (1, 2, 3, 1, 4, 5):
        linked(built, "git", f"x://{number}")
    assert [number for number in range(1, 6) if owner(built, f"x://{number}")] == [1, 4, 5]


# Changes


def test_every_change_is_counted_and_told_and_nothing_else() -> None:
    """The same offer again, or the removal of nobody, is no change."""
    seen: list[int] = []
    built = ResourceCatalog(on_change=lambda: seen.append(built.generation))
    offer = ServerOffer(prompts=[prompt("a")])
    put(built, "git", offer)
    put(built, "git", ServerOffer(prompts=[prompt("a")]))
    put(built, "git", ServerOffer(prompts=[prompt("b")]))
    remove(built, "docs")
    remove(built, "git")
    remove(built, "git")
    assert seen == [1, 2, 3]


@pytest.mark.parametrize(("before", "after"), [("1", "true"), ("1e400", "1e500"), ("0", "-0"), ("1", "1.0")])
def test_a_change_that_python_takes_for_none_is_one(before: str, after: str) -> None:
    """What counts is how a value is written; the order of its members does not."""
    seen: list[int] = []
    built = ResourceCatalog(on_change=lambda: seen.append(built.generation))
    others = [resource("x://2")]
    put(built, "git", ServerOffer(resources=[resource("x://1", size=parse(before)), *others]))
    put(built, "git", ServerOffer(resources=[resource("x://1", size=parse(after)), *others]))
    assert dump(built.resources.entries["x://1"].definition["size"]).decode() == after
    put(built, "git", ServerOffer(resources=[dict(reversed(resource("x://1", size=parse(after)).items())), *others]))
    assert seen == [1, 2]


def test_what_a_server_offered_last_is_known() -> None:
    """As it sent it; of one that offered nothing, nothing."""
    offer = ServerOffer(prompts=[prompt("a")], resources=[None])
    built = library(git=offer)
    assert built.offer("git") is offer
    assert built.offer("docs") == ServerOffer()


def test_two_entries_that_differ_have_different_digests() -> None:
    """So that whoever holds a list can be told of any change in it; the same has the same."""
    variants = [{}, {"title": "a"}, {"title": "b"}, {"title": None}, {"size": 2**70}, {"size": 2**70 + 1}]
    digests = [
        library(git=ServerOffer(resources=[resource("x://1", **more)])).resources.entries["x://1"].digest
        for more in (*variants, *variants)
    ]
    assert len(set(digests)) == len(variants)
    assert digests[: len(variants)] == digests[len(variants) :]


async def test_what_is_offered_last_counts_whatever_takes_longer() -> None:
    """A long offer that is still being read when the server offers less, or is removed, comes to nothing."""
    long = ServerOffer(prompts=[prompt(f"p{number}") for number in range(20_000)])
    built = ResourceCatalog()
    await asyncio.gather(built.put("git", long), built.put("git", ServerOffer(prompts=[prompt("a")])))
    assert list(built.prompts.entries) == ["git__a"]
    await asyncio.gather(built.put("git", long), built.remove("git"))
    assert not built.prompts.entries
    assert not built.knows("git")


async def test_changes_at_the_same_time_are_all_there() -> None:
    """Whoever waits for a change finds it, however many others come while things are laid out."""
    built = ResourceCatalog()

    async def put_one(number: int) -> None:
        server = f"s{number}"
        await built.put(server, ServerOffer(prompts=[prompt(f"p{each}") for each in range(500)]))
        assert built.knows(server)
        assert f"{server}__p499" in built.prompts.entries

    await asyncio.gather(*map(put_one, range(20)))
    assert len(built.prompts.entries) == 10_000


async def test_an_entry_that_stays_the_same_is_not_written_again() -> None:
    """Of a changed offer only what changed is made anew, under an alias as well."""
    built = ResourceCatalog(order=lambda: ORDER)
    await built.put("git", ServerOffer(resources=[resource("x://1")]))
    await built.put("docs", ServerOffer(resources=[resource("x://1"), resource("x://2")]))
    before = dict(built.resources.entries)
    await built.put(
        "docs", ServerOffer(resources=[resource("x://1"), resource("x://2", title="new"), resource("x://3")])
    )
    after = built.resources.entries
    assert after["x://1"] is before["x://1"]
    assert after["x://2"] is not before["x://2"]
    await built.put("git", ServerOffer())
    assert list(after) == ["x://1", "pegboard://docs/x://1", "x://2", "x://3"]
    assert list(built.resources.entries) == ["x://1", "x://2", "x://3"]
    assert built.resources.entries["x://2"] is after["x://2"]


async def test_a_long_offer_is_laid_out_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have turns, and see what was there before; a server that goes meanwhile stays gone."""
    monkeypatch.setattr(pace, "SLICE", 0.0)
    changes: list[int] = []
    built = ResourceCatalog(on_change=lambda: changes.append(len(built.resources.entries)))
    await built.put("old", ServerOffer(resources=[resource("a://old")]))
    long = ServerOffer(resources=[resource(f"a://{number}") for number in range(500)])
    putting = asyncio.ensure_future(built.put("long", long))
    turns = 0
    while not putting.done():
        await asyncio.sleep(0)
        turns += 1
        if turns == 100:
            assert set(built.resources.entries) == {"a://old"}
            assert not built.knows("long")
            await built.remove("old")
    assert turns > 400
    assert len(built.resources.entries) == 500
    assert changes == [1, 0, 500]
