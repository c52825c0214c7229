"""What is added and taken away where the two eras meet."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from pegboard.protocol.eras import (
    SERVER_INFO_KEY,
    UNSUPPORTED_VERSION,
    forward_params,
    modern_params,
)
from pegboard.protocol.results import result_for
from pegboard.servers import handshake
from pegboard.servers.errors import RpcError

INFO = {"name": "pegboard", "version": "9"}


def test_a_clients_params_go_on_without_this_hops_keys() -> None:
    """Everything else stays as it is, and the client's own object is untouched."""
    params: dict[str, Any] = {
        "name": "x",
        "unknown": [1],
        "_meta": {
            "progressToken": 5,
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {},
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/logLevel": "debug",
            "vendor/key": None,
        },
    }
    before = repr(params)
    assert forward_params(params) == {"name": "x", "unknown": [1], "_meta": {"vendor/key": None}}
    assert repr(params) == before
    assert forward_params({"_meta": {"progressToken": 1}, "a": 1}) == {"a": 1}
    assert forward_params(None) == {}


def test_the_modern_envelope_is_put_on_top() -> None:
    """The request's own `_meta` stays beside it."""
    stamped = modern_params({"_meta": {"a": 1}}, version="v", client_info={"name": "c"}, capabilities={"x": {}})
    assert stamped["_meta"] == {
        "a": 1,
        "io.modelcontextprotocol/protocolVersion": "v",
        "io.modelcontextprotocol/clientInfo": {"name": "c"},
        "io.modelcontextprotocol/clientCapabilities": {"x": {}},
    }


@pytest.mark.parametrize(
    ("given", "modern", "handshake"),
    [
        ({"a": None}, {"a": None, "resultType": "complete", "_meta": {SERVER_INFO_KEY: INFO}}, {"a": None}),
        ({"_meta": {}}, {"resultType": "complete", "_meta": {SERVER_INFO_KEY: INFO}}, {"_meta": {}}),
        (
            {"resultType": "complete", "_meta": {SERVER_INFO_KEY: {"name": "theirs"}, "k": 1}},
            {"resultType": "complete", "_meta": {SERVER_INFO_KEY: INFO, "k": 1}},
            {"_meta": {"k": 1}},
        ),
        (
            {"resultType": "complete", "_meta": {SERVER_INFO_KEY: {"name": "theirs"}}},
            {"resultType": "complete", "_meta": {SERVER_INFO_KEY: INFO}},
            {},
        ),
        (
            {"resultType": "task", "x": 1},
            {"resultType": "task", "x": 1, "_meta": {SERVER_INFO_KEY: INFO}},
            {"resultType": "task", "x": 1},
        ),
    ],
)
def test_a_result_fits_the_era_of_its_client(
    given: dict[str, Any], modern: dict[str, Any], handshake: dict[str, Any]
) -> None:
    """The modern era has its result type and server info, ours and not the server's; the handshake era has neither."""
    assert result_for("modern", given, server_info=INFO) == modern
    assert result_for("handshake", given, server_info=INFO) == handshake


def test_hints_for_caching_are_filled_in_only_where_they_are_missing() -> None:
    """What a server says itself wins; the handshake era gets none."""
    hints = {"ttlMs": 0, "cacheScope": "private"}
    assert result_for("modern", {"ttlMs": 9}, server_info=INFO, cacheable=hints)["ttlMs"] == 9
    assert result_for("modern", {}, server_info=INFO, cacheable=hints)["cacheScope"] == "private"
    assert "ttlMs" not in result_for("handshake", {}, server_info=INFO, cacheable=hints)


@pytest.mark.parametrize(
    ("code", "supported", "ends"),
    [
        (UNSUPPORTED_VERSION, ["2099-01-01"], True),
        (UNSUPPORTED_VERSION, ["2099-01-01", "2025-06-18"], False),
        (UNSUPPORTED_VERSION, [], False),
        (UNSUPPORTED_VERSION, "2099-01-01", False),
        (-32601, ["2099-01-01"], False),
    ],
)
def test_a_server_whose_versions_are_all_unknown_is_not_asked_in_the_old_way(
    code: int, supported: object, ends: bool
) -> None:
    """One that names a version of the handshake era, or none at all, is."""
    with pytest.raises(RpcError) if ends else contextlib.nullcontext():
        handshake._refuse_disjoint(RpcError(code, "not like this", {"supported": supported}))
