"""Sign-ins at the page: in and out of a server, the gateway's and each one's own."""

from __future__ import annotations

import contextlib
import urllib.error
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from auth.provider import open_provider
from login.person import agree
from login.protected import open_protected
from page import PHONE, Visit, gateway, pegboard, rest, visiting


@pytest.fixture(scope="module")
def servers() -> Generator[dict[str, Any]]:
    """One that the gateway signs in to, and one that everybody signs in to for themselves."""
    with open_provider() as issuer, open_protected(issuer) as protected:
        own = {"url": protected.url, "oauth": {"per": "user"}}
        yield {"guarded": {"url": protected.url}, "own": own}


def row(page: Page, server: str) -> Any:
    """The row of a sign-in."""
    return page.get_by_role("table", name="Sign-ins").get_by_role("row").filter(has_text=server)


def sign_in(url: str, server: str, **headers: str) -> None:
    """As a program does, by a pasted address."""
    path = f"{url}/api/servers/{server}/login"
    begun = rest(path, "POST", {}, **headers)
    assert rest(f"{path}/{begun['flow']}", "POST", {"callback": agree(begun["url"])}, **headers)["state"] == "done"


def test_somebody_signs_in_and_out(context: BrowserContext, servers: dict[str, Any], tmp_path: Path) -> None:
    """A server that waits has a button that leads through it; then its sign-in is listed, with no token of it; to sign
    out is asked once more, and then it waits again."""
    bodies: list[str] = []
    with gateway(tmp_path, {"guarded": servers["guarded"]}) as address, visiting(context, address) as visit:
        with contextlib.suppress(urllib.error.HTTPError):  # It refuses, and so it is known that it wants a sign-in.
            rest(f"{address}/api/servers/guarded/refresh", "POST", {})
        visit.page.on("response", lambda answer: bodies.append(answer.text()) if "/api/logins" in answer.url else None)
        page = visit.open("sign-ins")
        expect(page.get_by_text("Nobody is signed in.")).to_be_visible()
        expect(page.get_by_text("wants a sign-in")).to_be_visible()
        visit.check_accessible()
        page.get_by_role("button", name="Sign in (guarded)").click()
        with context.expect_page() as opened:
            page.get_by_role("link", name="Open the sign-in page").click()
        opened.value.wait_for_url("**/oauth/callback/*?*")
        opened.value.close()
        expect(row(page, "guarded")).to_contain_text("signed in")
        for words in ("everybody", "mcp", "http://127.0.0.1", "renews itself"):
            expect(row(page, "guarded")).to_contain_text(words)
        expect(page.get_by_role("button", name="Sign in (guarded)")).to_have_count(0)
        expect(page.get_by_role("dialog")).to_have_count(0)
        visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        visit.check_accessible()
        page.get_by_role("button", name="Sign out (guarded)").click()
        expect(page.get_by_role("dialog")).to_contain_text("everybody who uses it")
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert len(rest(f"{address}/api/logins")["logins"]) == 1
        page.get_by_role("button", name="Sign out (guarded)").click()
        page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
        expect(page.get_by_text("Signed out. The server has confirmed it.")).to_be_visible()
        expect(page.get_by_text("Nobody is signed in.")).to_be_visible()
        expect(page.get_by_role("button", name="Sign in (guarded)")).to_be_visible()
    assert bodies
    # How every JWT begins.
    assert "eyJ" not in "".join(bodies)


def test_each_signs_in_for_themselves(context: BrowserContext, servers: dict[str, Any], tmp_path: Path) -> None:
    """Whoever looks after the gateway sees whose they are, ends their own, and can end all others at once."""
    with gateway(tmp_path, servers) as address, visiting(context, address) as visit:
        token = rest(f"{address}/api/tokens", "POST", {"name": "alice", "rule": {}})["token"]
        sign_in(address, "own", authorization=f"Bearer {token}")
        page = visit.open("sign-ins")
        expect(row(page, "own")).to_contain_text("token alice")
        expect(row(page, "own").get_by_role("button")).to_have_text("Sign all out (own)")
        sign_in(address, "own")
        mine = row(page, "own").filter(has_text="local")
        mine.get_by_role("button", name="Sign out (own)").click()
        expect(page.get_by_role("dialog")).to_contain_text("You will be signed out")
        page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
        expect(mine).to_have_count(0)
        expect(row(page, "own")).to_contain_text("token alice")
        page.get_by_role("button", name="Sign all out (own)").click()
        expect(page.get_by_role("dialog")).to_contain_text("Everybody will be signed out")
        page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
        expect(page.get_by_text("Nobody is signed in.")).to_be_visible()
        assert rest(f"{address}/api/logins")["logins"] == []


def test_a_weak_token_sees_its_own_alone(context: BrowserContext, servers: dict[str, Any], tmp_path: Path) -> None:
    """Not the gateway's, not those of others, nothing of a server that its rule hides; its own it can end, and what is
    for admins it is not offered."""
    with gateway(tmp_path, {**servers, "later": servers["guarded"]}, auth={"required": True}) as address:
        config = tmp_path / "pegboard.json"
        said = [
            pegboard(config, "token", "add", name, *more)
            for name, *more in (["weak", "--server", "own,later"], ["bob"])
        ]
        weak, bob = (next(word for word in text.split() if word.startswith("pgb_")) for text in said)
        admin = next(
            word for word in pegboard(config, "token", "add", "boss", "--admin").split() if word.startswith("pgb_")
        )
        sign_in(address, "guarded", authorization=f"Bearer {admin}")
        sign_in(address, "own", authorization=f"Bearer {bob}")
        sign_in(address, "own", authorization=f"Bearer {weak}")
        with contextlib.suppress(urllib.error.HTTPError):
            rest(f"{address}/api/servers/later/refresh", "POST", {}, authorization=f"Bearer {admin}")
        visit = Visit(context.new_page(), address)
        page = visit.open()
        page.get_by_label("Token").fill(weak)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
        visit.open("sign-ins")
        expect(row(page, "own")).to_contain_text("token weak")
        expect(row(page, "own").get_by_role("button")).to_have_text("Sign out (own)")
        expect(page.locator(".attention").filter(has_text="later")).to_be_visible()
        expect(page.get_by_role("button", name="Sign in (later)")).to_have_count(0)
        visit.check_accessible()
        assert "guarded" not in page.content()
        assert "bob" not in page.content()
        page.get_by_role("button", name="Sign out (own)").click()
        page.get_by_role("dialog").get_by_role("button", name="Sign out").click()
        expect(page.get_by_text("Nobody is signed in.")).to_be_visible()
        logins = rest(f"{address}/api/logins", authorization=f"Bearer {admin}")["logins"]
        assert sorted(each["server"] for each in logins) == ["guarded", "own"]
        assert visit.strangers == []
        page.close()
