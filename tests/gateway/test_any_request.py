"""Whatever is sent to the REST API gets an answer that its description allows, and never one of ours that failed."""

from __future__ import annotations

from collections.abc import Generator
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from harness import serving, toy, write_config
from pegboard.gateway.rest.openapi import document

SLOW_IS_FINE = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
schema = schemathesis.openapi.from_dict(document())


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway in a process of its own, with a server, memories and chats, and a home where nothing else is."""
    folder: Path = tmp_path_factory.mktemp("any_request")
    config = write_config(
        folder / "pegboard.json", {"one": toy(tools=["x"])}, toolsets=["discovery", "memory", "chats"]
    )
    home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "PEGBOARD_STATE_DIR": str(folder / "state")}
    # Any server may be added, and none of the commands of this machine may be its command.
    home["PATH"] = str(folder / "nothing")
    with serving(config, 0, **home) as (_, url):
        yield url


@pytest.fixture(scope="module")
def session() -> Generator[requests.Session]:
    """One client for all requests: each would open a connection, and read the proxies of the machine, anew."""
    with requests.Session() as session:
        session.trust_env = False
        session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
        yield session


@schema.include(path_regex="^/api").parametrize()  # pyright: ignore[reportUntypedFunctionDecorator]
@settings(max_examples=20, deadline=None, suppress_health_check=SLOW_IS_FINE, derandomize=True)
def test_any_request_is_answered_as_described(case: Any, gateway: str, session: requests.Session) -> None:
    """Right and wrong requests alike: a status that fits, a body that fits its schema, and no failure of ours."""
    answer = case.call(base_url=gateway, session=session)
    checks = (not_a_server_error, content_type_conformance, response_schema_conformance)
    case.validate_response(answer, checks=checks)
