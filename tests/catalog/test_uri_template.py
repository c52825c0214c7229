"""URI templates: which URIs could have come from one, with every way to read them followed at once."""

from __future__ import annotations

import urllib.parse

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pegboard.catalog.uri_template import Template, Uri


def matches(template: str, uri: str) -> bool:
    return Template.of(template).matches(Uri(uri))


# The examples of RFC 6570, sections 1.2 and 3.2, by level.
RFC_6570 = [
    # 1
    ("{var}", "value"),
    ("{hello}", "Hello%20World%21"),
    ("O{empty}X", "OX"),
    ("O{undef}X", "OX"),
    ("{half}", "50%25"),
    ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
    # 2
    ("{+var}", "value"),
    ("{+hello}", "Hello%20World!"),
    ("{+path}/here", "/foo/bar/here"),
    ("here?ref={+path}", "here?ref=/foo/bar"),
    ("{+base}index", "http://example.com/home/index"),
    ("O{+empty}X", "OX"),
    ("X{#var}", "X#value"),
    ("X{#hello}", "X#Hello%20World!"),
    ("foo{#empty}", "foo#"),
    ("foo{#undef}", "foo"),
    # 3
    ("map?{x,y}", "map?1024,768"),
    ("{x,hello,y}", "1024,Hello%20World%21,768"),
    ("?{x,empty}", "?1024,"),
    ("{+x,hello,y}", "1024,Hello%20World!,768"),
    ("{+path,x}/here", "/foo/bar,1024/here"),
    ("{#x,hello,y}", "#1024,Hello%20World!,768"),
    ("{#path,x}/here", "#/foo/bar,1024/here"),
    ("X{.var}", "X.value"),
    ("X{.x,y}", "X.1024.768"),
    ("www{.dom}", "www.example.com"),
    ("X{.empty}", "X."),
    ("X{.undef}", "X"),
    ("{/var}", "/value"),
    ("{/var,x}/here", "/value/1024/here"),
    ("{/var,empty}", "/value/"),
    ("{;x,y}", ";x=1024;y=768"),
    ("{;x,y,empty}", ";x=1024;y=768;empty"),
    ("{?x,y}", "?x=1024&y=768"),
    ("{?x,y,empty}", "?x=1024&y=768&empty="),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
    ("{&x,y,empty}", "&x=1024&y=768&empty="),
    # 4
    ("{var:3}", "val"),
    ("{var:30}", "value"),
    ("{list}", "red,green,blue"),
    ("{keys}", "semi,%3B,dot,.,comma,%2C"),
    ("{keys*}", "semi=%3B,dot=.,comma=%2C"),
    ("{+path:6}/here", "/foo/b/here"),
    ("{+keys}", "semi,;,dot,.,comma,,"),
    ("{+keys*}", "semi=;,dot=.,comma=,"),
    ("{#path:6}/here", "#/foo/b/here"),
    ("{#keys*}", "#semi=;,dot=.,comma=,"),
    ("X{.var:3}", "X.val"),
    ("X{.list*}", "X.red.green.blue"),
    ("X{.keys*}", "X.semi=%3B.dot=..comma=%2C"),
    ("{/var:1,var}", "/v/value"),
    ("{/list*}", "/red/green/blue"),
    ("{/list*,path:4}", "/red/green/blue/%2Ffoo"),
    ("{/keys*}", "/semi=%3B/dot=./comma=%2C"),
    ("{;hello:5}", ";hello=Hello"),
    ("{;list*}", ";list=red;list=green;list=blue"),
    ("{;keys*}", ";semi=%3B;dot=.;comma=%2C"),
    ("{?var:3}", "?var=val"),
    ("{?list*}", "?list=red&list=green&list=blue"),
    ("{?keys*}", "?semi=%3B&dot=.&comma=%2C"),
    ("{&var:3}", "&var=val"),
    ("{&list*}", "&list=red&list=green&list=blue"),
]


@pytest.mark.parametrize(("template", "uri"), RFC_6570)
def test_the_examples_of_the_rfc_match(template: str, uri: str) -> None:
    """What a client expands by RFC 6570, at any of its four levels, is recognised."""
    assert matches(template, uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("file:///{name}", "file:///notes.txt"),
        ("file:///{+path}", "file:///a/b/c.txt"),
        ("db://{table}/{id}", "db://users/42"),
        ("db://{table}/{id}/rows", "db://users/42/rows"),
        ("git://{owner}/{repo}/blob/{ref}{/path*}", "git://me/it/blob/main/src/a.py"),
        ("search://find{?q,lang}", "search://find?q=x%20y&lang=en"),
        ("search://find{?q,lang}", "search://find"),
        ("note://{id}{#part}", "note://7#end"),
        ("x://{a}-{b}", "x://1-2-3"),
        ("x://{a}b{c}", "x://bbb"),
        # Where the first way to read it is not the right one.
        ("up{+path}{var}/here", "up/foo/barvalue/here"),
        ("x://{/seg*}{.ext}", "x:///a/b.json"),
        ("file:///{+dir}/logs/{name}", "file:///a/logs/b/logs/c"),
        ("file:///{+path}.{ext}", "file:///src/v1.2/main.py"),
        ("git:/{/path*}/blob/{sha}", "git://a/blob/b/blob/c"),
        ("x://{+path}/lines/{n}", "x://a/lines/b/lines/5"),
        ("x://{+a}?v={b}", "x://p?v=1?v=2"),
        ("x://{a}{?q}", "x://1?q=a/b"),
        # What a URI cannot hold as it is stands there with percent signs, or as the server wrote it.
        ("file:///my docs/{name}", "file:///my%20docs/a"),
        ("file:///my docs/{name}", "file:///my docs/a"),
        ("file:///my%20docs/{name}", "file:///my%20docs/a"),
        ("file:///größe/{name}", "file:///gr%C3%B6%C3%9Fe/a"),
        ("file:///größe", "file:///gr%C3%B6%C3%9Fe"),
        ("plain://no/expression", "plain://no/expression"),
        ("x://{unknown|op}/{!y}", "x://1/2"),
        ("x://unclosed{brace", "x://unclosed{brace"),
        ("x://{}", "x://anything"),
        ("", ""),
        # Scheme and host in any case, and in the case that the template has.
        ("file:///{name}", "FILE:///a"),
        ("x://Host/{name}", "x://hOST/a"),
        ("x://{+a}B", "x://fooB"),
    ],
)
def test_what_could_have_come_from_a_template(template: str, uri: str) -> None:
    """As servers write them; what is no expression is taken as it stands."""
    assert matches(template, uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("file:///{name}", "file:///a/b"),
        ("file:///{name}", "file:///a?b"),
        ("file:///{name}", "file:///a#b"),
        ("file:///{name}", "http:///a"),
        ("file:///{name}", "FILE:///A?"),
        ("file:///A/{name}", "file:///a/b"),
        ("x://h/{name}/B", "x://h/a/b"),
        ("file:///{name}.txt", "file:///a.md"),
        ("file:///{name}.txt", "file:///.tx"),
        ("db://{table}/{id}", "db://users"),
        ("db://{table}/{id}", "db://users/42/rows"),
        ("db://{table}/{id}/rows", "db://users/42/columns"),
        ("{/path*}", "/a?b"),
        ("x{?q}", "x?q=1#end"),
        ("plain://no", "plain://no/more"),
        ("plain://no", "plain://n"),
        ("file:///my%20docs/{name}", "file:///my docs/a"),
        ("x://{a}b{c}", "x://1/b"),
        # Every character of a literal counts, not its first alone.
        ("x://{a}/one/{b}", "x://1/two/2"),
        ("x://{a}/one", "x://1/oxe"),
        # A literal is not counted twice.
        ("aXa{b}aXa", "aXa"),
        ("ab{x}b", "ab"),
    ],
)
def test_what_could_not_have_come_from_a_template(template: str, uri: str) -> None:
    """Another scheme, another shape, or a character that the expression cannot give."""
    assert not matches(template, uri)


def test_more_that_is_fixed_weighs_more() -> None:
    """Of two templates that match, the one that says more is meant."""
    weights = [Template.of(text).weight for text in ("{+all}", "file:///{+path}", "file:///logs/{+path}")]
    assert weights == [0, 8, 13]
    assert Template.of("{long_name_of_a_variable}").weight == 0


def expanded(operator: str, value: str) -> str:
    """One expression with one value, by the RFC's table."""
    first = {"+": "", ".": ".", "/": "/", ";": ";name=", "?": "?name=", "&": "&name=", "#": "#", "": ""}[operator]
    safe = urllib.parse.quote(value, safe=":/?#[]@!$&'()*+,;=" if operator in {"+", "#"} else "")
    return first + safe


LITERALS = st.text(alphabet="ab/:.-_?=&", max_size=5)
EXPRESSIONS = st.sampled_from(["", "", ".", "/", ";", "?", "&", "+", "#"])
VALUES = st.text(alphabet=st.sampled_from("abz09-._~ %é/"), max_size=6)


@settings(deadline=None)
@given(
    st.lists(st.tuples(LITERALS, st.sampled_from(["", "", "."]), VALUES), min_size=1, max_size=5),
    LITERALS,
    EXPRESSIONS,
    VALUES,
)
@example([("a", "", "a"), ("a", "", "a")], "a", "", "aa")
def test_what_was_expanded_matches(parts: list[tuple[str, str, str]], tail: str, operator: str, value: str) -> None:
    """Whatever the texts between them are, with values that are encoded as they have to be; the last may hold all."""
    template = "".join(f"{literal}{{{op}name}}" for literal, op, _ in parts) + f"{tail}{{{operator}name}}"
    uri = "".join(literal + expanded(op, given) for literal, op, given in parts) + tail + expanded(operator, value)
    assert matches(template, uri)


@settings(deadline=None)
@given(st.text(), st.text())
@example("{" * 50, "{" * 50)
@example("}{", "}{")
def test_no_text_makes_it_raise(template: str, uri: str) -> None:
    """Any template and any URI have an answer; a text without expressions matches itself, as it is or encoded."""
    answer = matches(template, uri)
    if not Template.of(template).forbidden:
        safe = "!#$%&'()*+,/:;=?@[]~"
        assert answer == (uri in {template, urllib.parse.quote(template, safe=safe)})


LONGEST = 4096


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("{a}" * 1300, "x" * LONGEST),
        ("{a}x" * 1000, "x" * LONGEST),
        ("{a}x" * 1000 + "y", "x" * LONGEST),
        ("{+a}ab" * 600 + "{+b}", "a" * (LONGEST - 1) + "b"),
        ("{+a}" + "a" * 4000 + "b{+c}", "a" * LONGEST),
        ("{+a}" + "ab" * 1000 + "c{+c}" + "ab" * 1000, "ab" * (LONGEST // 2)),
        ("{" * LONGEST, "x" * LONGEST),
        ("{a" * (LONGEST // 2), "{a" * (LONGEST // 2)),
        ("{" + "a" * 4000, "x" * LONGEST),
        ("{+a}/" * 800 + "{b}", "/" * LONGEST),
    ],
)
def test_a_hostile_template_ends(template: str, uri: str) -> None:
    """Four kilobytes of the worst on either side; a pattern that tried all ways one by one would never end."""
    assert matches(template, uri[:-1] + "!") in {True, False}


def test_a_giant_template_costs_nothing() -> None:
    """Nobody means a template with so many expressions; it must not keep everybody else waiting."""
    assert matches("{a}" * 100_000, "x" * LONGEST) in {True, False}


def test_a_giant_uri_matches_nothing() -> None:
    """Beyond four kilobytes nobody means a template."""
    assert matches("x{+a}", "x" * LONGEST)
    assert not matches("x{+a}", "x" * (LONGEST + 1))


def test_the_text_between_expressions_is_bounded() -> None:
    """Beyond what anybody means, a template is no pattern any more: it matches itself alone."""
    for template, fits in (("{+a}" + "b" * 256, True), ("{+a}" + "b" * 257, False), ("{a}" * 17, False)):
        assert matches(template, template.replace("{+a}", "x").replace("{a}", "x")) == fits
        assert matches(template, template)
