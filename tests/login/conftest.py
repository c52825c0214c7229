"""An authorization server for all tests here, and a server that trusts it for each."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from auth.provider import open_provider
from login.protected import ProtectedToy, open_protected


@pytest.fixture(scope="session")
def issuer() -> Generator[str]:
    """oidc-provider; its user agrees to all."""
    with open_provider() as address:
        yield address


@pytest.fixture
def protected(issuer: str) -> Generator[ProtectedToy]:
    """A server that wants its tokens."""
    with open_protected(issuer) as toy:
        yield toy


@pytest.fixture(autouse=True)
def no_desktop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have a browser, or come over SSH."""
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
