"""An issuer for each test."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from auth.issuer import Issuer, open_issuer


@pytest.fixture
def issuer() -> Generator[Issuer]:
    """One that listens on this machine."""
    with open_issuer() as issuer:
        yield issuer
