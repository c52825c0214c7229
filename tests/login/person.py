"""A person with a browser, who signs in, agrees, and types in codes."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urljoin, urlsplit

import httpx2

from harness import LIMIT

_FIELD = re.compile(r'<input[^>]*name="(\w+)"[^>]*value="([^"]*)"')


def agree(url: str) -> str:
    """Follow an authorization address until the browser is sent back: to which address, which is not visited."""
    redirect = parse_qs(urlsplit(url).query)["redirect_uri"][0]
    with httpx2.Client(timeout=LIMIT) as http:
        for _ in range(20):
            answer = http.get(url)
            assert answer.has_redirect_location, (url, answer.status_code, answer.text)
            url = urljoin(url, answer.headers["location"])
            if url.startswith(redirect):
                return url
    raise AssertionError(f"the browser is sent around: {url}")


def visit(url: str) -> httpx2.Response:
    """What a browser gets at an address."""
    with httpx2.Client(timeout=LIMIT) as http:
        return http.get(url, headers={"accept": "text/html"})


def type_code(address: str, code: str) -> None:
    """Type a device code in, and confirm it."""
    with httpx2.Client(timeout=LIMIT, follow_redirects=True) as http:
        page = http.get(address)
        for more in ({"user_code": code}, {"confirm": "yes"}):
            fields = {**dict(_FIELD.findall(page.text)), "user_code": code, **more}
            page = http.post(address, data=fields)
            assert page.status_code == 200, page.text
