"""Fetching from addresses that others name: where it goes, how long it waits, and how much it takes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest

from oauth.scripted import Said, ScriptedServer, said
from pegboard.oauth import fetching
from pegboard.oauth.fetching import Fetcher, FetchFailed

pytestmark = pytest.mark.anyio

OUTSIDE = "https://mcp.example/mcp"
Resolve = Callable[[str, Sequence[str]], None]


@pytest.fixture
def resolve(monkeypatch: pytest.MonkeyPatch) -> Resolve:
    """Names that resolve to the given addresses, one lookup after the other; the last one stays."""
    known: dict[str, list[str]] = {"mcp.example": ["93.184.216.34"]}
    real = socket.getaddrinfo

    def getaddrinfo(host: Any, port: Any, *args: Any, **kwargs: Any) -> Any:
        if (left := known.get(host)) is None:
            return real(host, port, *args, **kwargs)
        return real(left.pop(0) if len(left) > 1 else left[0], port, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)

    def name(host: str, addresses: Sequence[str]) -> None:
        known[host] = [*addresses]

    return name


class Listener:
    """A socket that counts who comes."""

    def __init__(self, family: socket.AddressFamily, address: str) -> None:
        self._socket = socket.create_server((address, 0), family=family)
        self._socket.setblocking(False)
        self.port: int = self._socket.getsockname()[1]

    def has_visitors(self) -> bool:
        try:
            self._socket.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def hang_up(self) -> None:
        """Take a visitor, and have no certificate of its name."""
        self._socket.settimeout(30)
        self._socket.accept()[0].close()

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def listener() -> Generator[Listener]:
    """One on this machine."""
    made = Listener(socket.AF_INET, "127.0.0.1")
    yield made
    made.close()


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0"),
        *("[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "inside.example", "a.localhost"),
    ],
)
async def test_a_server_outside_leads_to_nobody_on_this_machine(
    resolve: Resolve, listener: Listener, host: str
) -> None:
    """In whatever form the address is written: no connection is made."""
    resolve("inside.example", ["127.0.0.1"])
    resolve("a.localhost", ["127.0.0.1"])
    for fetcher in (Fetcher(OUTSIDE), Fetcher(OUTSIDE, allow_http=True)):
        for scheme in ("https", "http"):
            with pytest.raises(FetchFailed) as failed:
                await fetcher.get_json(f"{scheme}://{host}:{listener.port}/x")
            assert not failed.value.is_away
    assert not listener.has_visitors()


@pytest.mark.parametrize("host", ["169.254.169.254", "10.1.2.3", "[fd00:ec2::254]", "100.64.1.1", "224.0.0.1"])
async def test_a_server_outside_leads_to_no_network_inside(resolve: Resolve, host: str) -> None:
    """Nor to where clouds keep their secrets."""
    with pytest.raises(FetchFailed, match="where nobody outside may lead") as failed:
        await Fetcher(OUTSIDE).post_form(f"https://{host}/token", {"code": "x"})
    assert not failed.value.is_away


async def test_a_name_that_rebinds_is_held_to_the_address_that_is_used(resolve: Resolve, listener: Listener) -> None:
    """It is public when it is looked at first, and this machine when it is connected to."""
    resolve("rebinds.example", ["93.184.216.34", "127.0.0.1"])
    await asyncio.get_running_loop().getaddrinfo("rebinds.example", 443)
    with pytest.raises(FetchFailed, match="of this machine"):
        await Fetcher(OUTSIDE).get_json(f"https://rebinds.example:{listener.port}/x")
    assert not listener.has_visitors()


async def test_the_server_itself_cannot_rebind_to_the_inside(resolve: Resolve, listener: Listener) -> None:
    """A name that claims to be of this machine has to answer there, with its certificate, before it counts."""
    resolve("evil.example", ["127.0.0.1"])
    fetcher = Fetcher(f"https://evil.example:{listener.port}/mcp")
    accept = asyncio.get_running_loop().run_in_executor(None, listener.hang_up)
    with pytest.raises(FetchFailed, match="where nobody outside may lead"):
        await fetcher.get_json("https://10.1.2.3/token")
    await accept


async def test_a_server_inside_leads_to_its_own_network(resolve: Resolve, script: ScriptedServer) -> None:
    """Its name resolves to this machine, and it does answer there."""
    resolve("inside.example", ["127.0.0.1"])
    port = script.url.rpartition(":")[2]
    script.answers["/x"] = said({"a": 1})
    answer = await Fetcher(f"http://inside.example:{port}/mcp", allow_http=True).get_json(f"{script.url}/x")
    assert answer.members == {"a": 1}
    assert script.paths == ["/", "/x"]


async def test_what_the_config_names_is_reached_wherever_it_is(resolve: Resolve, script: ScriptedServer) -> None:
    """An issuer inside, for a server outside: its owner says so."""
    script.answers["/x"] = said({"a": 1})
    fetcher = Fetcher(OUTSIDE, allow_http=True, named=[script.url])
    assert (await fetcher.get_json(f"{script.url}/x")).members == {"a": 1}


@pytest.mark.parametrize("host", ["169.254.169.254", "10.1.2.3", "inside.example"])
async def test_behind_a_proxy_the_name_is_checked(
    resolve: Resolve, listener: Listener, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """As far as this machine knows it: the proxy is not asked at all."""
    resolve("inside.example", ["93.184.216.34", "192.168.1.1"])
    await asyncio.get_running_loop().getaddrinfo("inside.example", 443)
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{listener.port}")
    with pytest.raises(FetchFailed, match="where nobody outside may lead"):
        await Fetcher(OUTSIDE).get_json(f"https://{host}/x")
    assert not listener.has_visitors()


@pytest.mark.parametrize(
    ("server", "url", "is_taken"),
    [
        ("https://mcp.example", "https://as.example/x", True),
        ("https://mcp.example", "http://as.example/x", False),
        ("https://mcp.example", "http://127.0.0.1/x", False),
        ("http://127.0.0.1:1/mcp", "http://localhost:2/x", True),
        ("http://127.0.0.1:1/mcp", "http://as.example/x", False),
        ("https://mcp.example", "https://me:secret@as.example/x", False),
        ("https://mcp.example", "file:///etc/passwd", False),
        ("https://mcp.example", "javascript:alert(1)", False),
        ("https://mcp.example", "https://[::1", False),
        ("https://mcp.example", "", False),
    ],
)
async def test_which_addresses_are_taken(server: str, url: str, is_taken: bool) -> None:
    """https ones, and those of this machine for a server of this machine."""
    assert (Fetcher(server).address_problem(url) is None) is is_taken


async def test_what_is_wrong_is_said_without_secrets() -> None:
    """A password or a query of an address is nowhere in the message."""
    with pytest.raises(FetchFailed) as failed:
        await Fetcher(OUTSIDE).get_json("http://me:tulip@as.example/x?code=tulip")
    assert "tulip" not in str(failed.value)
    assert "as.example/x" in str(failed.value)


async def test_redirects_stay_within_the_origin(script: ScriptedServer, listener: Listener) -> None:
    """Three of them at most; what is posted goes on only where the same request is meant."""
    fetcher = Fetcher(script.url)
    script.answers["/end"] = said({"a": 1})
    for status in (301, 302, 303, 307, 308):
        script.answers["/moved"] = said({}, status, location="/end")
        assert (await fetcher.get_json(f"{script.url}/moved")).members == {"a": 1}
    script.answers["/moved"] = said({}, 302, location="/end")
    with pytest.raises(FetchFailed):
        await fetcher.post_form(f"{script.url}/moved", {"code": "x"})
    script.answers["/away"] = said({}, 307, location=f"http://127.0.0.1:{listener.port}/")
    with pytest.raises(FetchFailed):
        await fetcher.get_json(f"{script.url}/away")
    assert not listener.has_visitors()
    script.answers["/round"] = said({}, 307, location="/round")
    with pytest.raises(FetchFailed, match="circle"):
        await fetcher.get_json(f"{script.url}/round")
    assert script.paths.count("/round") == 4


async def test_an_answer_without_an_end_is_cut(script: ScriptedServer) -> None:
    """At 256 kB."""
    script.answers["/x"] = Said(body=b"{", is_endless=True)
    with pytest.raises(FetchFailed, match="262,144 bytes"):
        await Fetcher(script.url).get_json(f"{script.url}/x")


async def test_who_keeps_silent_is_away(script: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a time limit for all of it."""
    monkeypatch.setattr(fetching, "TIME_LIMIT", 0.1)
    script.answers["/x"] = Said(is_silent=True)
    with pytest.raises(FetchFailed, match=r"did not answer within 0\.1 s") as failed:
        await Fetcher(script.url).get_json(f"{script.url}/x")
    assert failed.value.is_away


async def test_nobody_there_is_away(listener: Listener) -> None:
    """A refused connection may be taken later."""
    listener.close()
    url = f"http://127.0.0.1:{listener.port}"
    with pytest.raises(FetchFailed) as failed:
        await Fetcher(url).get_json(url)
    assert failed.value.is_away


@pytest.mark.parametrize("body", [b"<html>", b"[1]", b"", b'{"a": ', b"\xff"])
async def test_what_is_no_json_object_has_no_members(script: ScriptedServer, body: bytes) -> None:
    """Its status and the reason are there."""
    script.answers["/x"] = Said(503, body)
    answer = await Fetcher(script.url).get_json(f"{script.url}/x")
    assert (answer.status, answer.members) == (503, {})
    assert answer.problem


async def test_no_cookies_and_no_credentials_go_along(script: ScriptedServer) -> None:
    """Each fetch is one of a stranger."""
    script.answers["/x"] = said({}, set_cookie="a=b")
    fetcher = Fetcher(script.url)
    for _ in range(2):
        await fetcher.get_json(f"{script.url}/x")
    for asked in script.asked:
        assert not {"cookie", "authorization"} & asked.headers.keys()
        assert asked.headers["accept"] == "application/json"
