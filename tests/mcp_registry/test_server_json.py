"""`server.json` in all of its forms, and what is none."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_registry.records import ALL, DEPRECATED, OLD_FORM, PACKAGE_ONLY, record
from pegboard.mcp_registry.server_json import UnreadableServer, read_server


def test_a_server_is_read_with_what_the_registry_says_of_it() -> None:
    """Name, publisher, version, status and source."""
    server = read_server(PACKAGE_ONLY)
    assert (server.name, server.publisher, server.version) == (
        "io.github.alice/weather-mcp",
        "io.github.alice",
        "1.2.0",
    )
    assert (server.status, server.updated_at) == ("active", "2026-11-01T00:00:00Z")
    assert server.repository == "https://example.com/alice/weather"
    assert read_server(DEPRECATED).status == "deprecated"


def test_the_old_form_is_read_like_the_new_one() -> None:
    """snake_case, `registry_name`, `version_detail`, `transport_type`, and no wrapper around it."""
    server = read_server(OLD_FORM)
    (package,) = server.packages
    assert (server.version, package.registry_type, package.identifier) == ("0.6.2", "npm", "@carol/server-brave")
    (key,) = package.environment
    assert (key.name, key.is_required, key.is_secret) == ("BRAVE_API_KEY", True, True)
    (folder,) = package.package_arguments
    assert (folder.hint, folder.is_positional, folder.is_repeated) == ("dir", True, True)
    assert server.remotes[0].type == "sse"


@pytest.mark.parametrize("wrapper", ["_meta", "x-io.modelcontextprotocol.registry"])
def test_the_status_is_found_where_registries_put_it(wrapper: str) -> None:
    """In `_meta`, beside the server or inside of it, or in the older key."""
    official = {"status": "deprecated"}
    meta = {"io.modelcontextprotocol.registry/official": official} if wrapper == "_meta" else official
    assert read_server({"server": {"name": "a/b"}, wrapper: meta}).status == "deprecated"
    if wrapper == "_meta":
        assert read_server({"name": "a/b", wrapper: meta}).status == "deprecated"


def test_names_of_variables_keep_their_case() -> None:
    """They are the publisher's own: `isRequired` may be one."""
    argument = {"type": "positional", "value": "{is_required}", "variables": {"is_required": {"default": "x"}}}
    server = read_server(record("a/b", packages=[{"registryType": "npm", "packageArguments": [argument]}]))
    assert set(server.packages[0].package_arguments[0].variables) == {"is_required"}


NO_SERVERS: tuple[Any, ...] = (
    None,
    5,
    "x",
    [],
    {},
    {"server": None},
    {"server": {"name": 5}},
    {"server": {"name": ""}},
    {"server": {"name": "../etc/passwd"}},
    {"server": {"name": "--option"}},
    {"server": {"name": "a/b\x1b[0m"}},
    {"server": {"name": "a b"}},
    {"server": {"name": "a" * 201}},
    *({"server": {"name": "a/b", key: [{}] * 201}} for key in ("packages", "remotes")),
    {"server": {"name": "a/b", "remotes": [{"variables": {str(at): {} for at in range(201)}}]}},
)


@pytest.mark.parametrize("thing", NO_SERVERS)
def test_what_is_no_server_is_refused(thing: Any) -> None:
    """A name that could be misread counts as none; nobody has hundreds of packages or variables."""
    with pytest.raises(UnreadableServer):
        read_server(thing)


WRONG: tuple[Any, ...] = (None, 5, "x", [], {}, [None], [5], [[]], [{"name": 5, "variables": [], "choices": {}}], True)


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("key", ["packages", "remotes", "title", "description", "version", "repository", "_meta"])
def test_what_has_a_wrong_type_counts_as_left_out(key: str, wrong: Any) -> None:
    """The rest of the server is read."""
    assert read_server({"server": {"name": "a/b", key: wrong}}).name == "a/b"


def test_every_fixture_can_be_read() -> None:
    """They are what the other tests are about."""
    assert [read_server(each).name for each in ALL] == [each.get("server", each)["name"] for each in ALL]
