"""How a call went, in a word, and how large its result is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard import exactjson
from pegboard.audit import size
from pegboard.audit.outcome import outcome_of
from pegboard.audit.writer import AuditUnavailable
from pegboard.result import Forbidden, ToolErrorCode, ToolFailure
from pegboard.servers.errors import RpcError

pytestmark = pytest.mark.anyio

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    ("exc", "told"),
    [
        (None, ("failed", "")),
        (RpcError(-32603, "no"), ("rpc_error", "-32603")),
        (AuditUnavailable("no"), ("refused:audit", "")),
        (TimeoutError(), ("timeout", "")),
        (Forbidden("no"), ("refused:forbidden", "")),
        (ToolFailure(ToolErrorCode.RATE_LIMITED, "no", retryable=True), ("refused:limit", "")),
        (ToolFailure(ToolErrorCode.UNAVAILABLE, "no", retryable=True), ("unavailable", "")),
        (ToolFailure(ToolErrorCode.INVALID_INPUT, "no", retryable=False), ("invalid", "")),
        (ToolFailure(ToolErrorCode.EXECUTION_FAILED, "no", retryable=False), ("failed", "")),
        (KeyError("quokka"), ("failed", "KeyError")),
    ],
)
def test_what_went_wrong_is_a_word(exc: Exception | None, told: tuple[str, str]) -> None:
    """Never the text of an exception: it may say what was in the arguments."""
    assert outcome_of("failed", "", exc) == told
    assert outcome_of("ok", "", exc) == ("ok", "")
    assert outcome_of("failed", "rule", exc) == ("refused:rule", "")


@given(value=VALUES)
async def test_the_size_of_a_large_value_is_that_of_its_json(value: Any) -> None:
    """Though it is never written as a whole."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(size, "_SMALL", -1)
        patched.setattr(size, "_PORTION", 3)
        assert await size.json_size(value) == len(exactjson.dump(value))
