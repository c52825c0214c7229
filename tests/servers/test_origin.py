"""Where a server is: its address taken apart, and the head of a request that nothing can be smuggled into."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.result import ToolFailure
from pegboard.servers.http.client import within_origin
from pegboard.servers.http.origin import Origin


def sent(url: str, headers: dict[str, str] | None = None) -> list[str]:
    return Origin.of(url).head("POST", url, headers or {}).decode().split("\r\n")


@pytest.mark.parametrize(
    ("url", "host", "port", "authority"),
    [
        ("http://Example.COM/mcp", "example.com", 80, "example.com"),
        ("https://example.com:443/mcp", "example.com", 443, "example.com"),
        ("https://example.com:8443", "example.com", 8443, "example.com:8443"),
        ("http://user:pass@example.com:443/", "example.com", 443, "example.com:443"),
        ("http://[::1]:9000/mcp", "::1", 9000, "[::1]:9000"),
        ("http://[2001:DB8::1]/mcp", "2001:db8::1", 80, "[2001:db8::1]"),
        ("http://my_container:8000/mcp", "my_container", 8000, "my_container:8000"),
        ("https://bücher.example/", "xn--bcher-kva.example", 443, "xn--bcher-kva.example"),
        # Not strasse.example, which belongs to somebody else.
        ("https://straße.example/", "xn--strae-oqa.example", 443, "xn--strae-oqa.example"),
    ],
)
def test_a_host_is_named_as_the_wire_wants_it(url: str, host: str, port: int, authority: str) -> None:
    """Ports, addresses in brackets, names of other scripts; whoever we are there is no part of it."""
    origin = Origin.of(url)
    assert (origin.host, origin.port, origin.authority) == (host, port, authority)
    assert f"host: {authority}" in sent(url)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "example.com/mcp",
        "http://",
        "http://:80/",
        "http://example.com:0/",
        "http://example.com:99999/",
        "http://example.com:x/",
        "http://[::1/",
        "http://exa mple/",
        "http://a\0b/",
        "http://a/\\@b\\c.example:80:90/",
        "http://xn--\u00fc.example/",
    ],
)
def test_an_address_that_cannot_be_used_is_refused(url: str) -> None:
    """With words that say so, and not when the first request is sent."""
    if "\\" in url:
        # A backslash is no end of a host: this one is a path of host a.
        assert Origin.of(url).host == "a"
        return
    with pytest.raises(ToolFailure):
        Origin.of(url)


def test_a_refused_address_does_not_give_away_its_secrets() -> None:
    """Neither the password nor what stands behind the question mark."""
    with pytest.raises(ToolFailure) as caught:
        Origin.of("ftp://user:secret@example.com/x?token=secret")
    assert "secret" not in str(caught.value)
    assert "example.com" in str(caught.value)


@pytest.mark.parametrize(
    ("url", "line"),
    [
        ("http://h", "POST / HTTP/1.1"),
        ("http://h?a=1&b=/?", "POST /?a=1&b=/? HTTP/1.1"),
        ("http://h/a%2Fb/%7e?x=%20#part", "POST /a%2Fb/%7e?x=%20 HTTP/1.1"),
        ("http://h/a b/ü?q=é \"'", "POST /a%20b/%C3%BC?q=%C3%A9%20%22' HTTP/1.1"),
        ("http://h//twice", "POST //twice HTTP/1.1"),
        ("http://h/x\r\nevil: 1", "POST /xevil:%201 HTTP/1.1"),
        ("http://h/x\x0b\x85\u2028", "POST /x%0B%C2%85%E2%80%A8 HTTP/1.1"),
    ],
)
def test_a_path_is_written_in_percents_once(url: str, line: str) -> None:
    """What was written so already stays, and no line can be begun in it."""
    assert sent(url)[0] == line


def test_a_name_and_password_become_a_header() -> None:
    """Whatever characters they have, unless the config says who we are."""
    assert "authorization: Basic w7w6cEBzcw==" in sent("http://%C3%BC:p%40ss@h/")
    assert "authorization: Basic dXNlcjo=" in sent("http://user@h/")
    given = sent("http://user:pass@h/", {"Authorization": "Bearer x"})
    assert [line for line in given if line.startswith("authorization")] == ["authorization: Bearer x"]


@pytest.mark.parametrize(
    "headers",
    [
        {"x": "a\r\nevil: 1"},
        {"x": "a\nevil: 1"},
        {"x": "a\0b"},
        {"x\r\nevil": "1"},
        {"x: 1\r\nevil": "1"},
        {"x y": "1"},
        {"x:": "1"},
        {"": "1"},
        {"ü": "1"},
        {"Content-Length": "0"},
        {"transfer-Encoding": "chunked"},
    ],
)
def test_nothing_can_be_smuggled_into_a_head(headers: dict[str, str]) -> None:
    """Neither another header nor another idea of where the request ends."""
    with pytest.raises(ToolFailure):
        Origin.of("http://h/").head("POST", "http://h/", headers)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=6), st.text(max_size=12), max_size=3), st.text(max_size=20))
def test_a_head_has_as_many_lines_as_it_was_given(headers: dict[str, str], path: str) -> None:
    """Whatever headers and addresses are made of."""
    origin = Origin.of("http://h/")
    try:
        head = origin.head("GET", "http://h/" + path, headers)
    except (ToolFailure, UnicodeEncodeError):
        return
    lines = head.removesuffix(b"\r\n").split(b"\r\n")
    assert len(lines) == 1 + len({"host", "user-agent", "accept-encoding", *(name.lower() for name in headers)})
    assert b"\n" not in b"".join(lines)
    assert len(lines[0].split(b" ")) == 3


@pytest.mark.parametrize(
    ("url", "location", "target"),
    [
        ("http://h/mcp", "/mcp/", "http://h/mcp/"),
        ("http://h/mcp", "mcp/?a=1#x", "http://h/mcp/?a=1"),
        ("http://h/mcp", "http://H:80/mcp/", "http://h/mcp/"),
        ("http://me:secret@h:80/mcp", "http://h/mcp/", "http://me:secret@h:80/mcp/"),
        ("https://h/mcp", "//h/x", "https://h/x"),
        ("http://h/mcp", "http://you:other@h/x", "http://h/x"),
        ("https://h/mcp", "http://h/mcp", None),
        ("http://h/mcp", "https://h/mcp", None),
        ("http://h/mcp", "http://h:81/mcp", None),
        ("http://h/mcp", "//other/mcp", None),
        ("http://h/mcp", "http://h@other/mcp", None),
        ("http://h/mcp", "http://h.other/mcp", None),
        ("http://h/mcp", "http://[", None),
        ("http://h/mcp", "http://h:x/", None),
        ("http://h/mcp", "javascript:alert(1)", None),
    ],
)
def test_a_location_is_followed_within_its_origin_alone(url: str, location: str, target: str | None) -> None:
    """The same scheme, host and port, however they are written; and with our own name there."""
    assert within_origin(url, location) == target
