"""What a refusal says of the credentials that it wants."""

from __future__ import annotations

import time

import pytest

from pegboard.servers.authorization import Challenge, read_challenges
from pegboard.servers.http.repeated_headers import join_header

METADATA = "https://example.com/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", []),
        ("Bearer", [("bearer", {})]),
        (f'Bearer resource_metadata="{METADATA}", a="b"', [("bearer", {"resource_metadata": METADATA, "a": "b"})]),
        ('Basic a="x, Bearer b=c", bearer ERROR=e', [("basic", {"a": "x, Bearer b=c"}), ("bearer", {"error": "e"})]),
        ('Negotiate YWJj==, Bearer a = "x" , b = "e"', [("negotiate", {}), ("bearer", {"a": "x", "b": "e"})]),
        ("Basic YWJj=", [("basic", {})]),
        ('Bearer title="a \\"b\\" \\\\ c"', [("bearer", {"title": 'a "b" \\ c'})]),
        ('Bearer error="not closed', [("bearer", {"error": "not closed"})]),
        ('Bearer scope="a", scope="b"', [("bearer", {"scope": "a"})]),
        (f"Bearer a={METADATA}?x=y, error=e", [("bearer", {"a": f"{METADATA}?x=y", "error": "e"})]),
        (',, "stray", Bearer scope=a,,', [("bearer", {"scope": "a"})]),
        ("scope=a, Bearer", [("bearer", {})]),
    ],
)  # fmt: skip
def test_header_is_read_as_the_challenges_that_it_has(header: str, expected: object) -> None:
    """Several challenges, quoted strings with commas, escapes and credentials in place of parameters are told apart."""
    assert read_challenges(header) == expected


def test_bearer_challenge_is_found_among_others() -> None:
    """Only the challenge of a scheme that one signs in for says which error, scope and metadata there are."""
    header = f'Basic scope="no", Bearer error="insufficient_scope", scope="b a b", resource_metadata="{METADATA}"'
    challenge = Challenge.of(403, {"www-authenticate": header})
    assert challenge == Challenge(403, True, "insufficient_scope", "b a b", METADATA)
    assert (challenge.wants_scopes, challenge.scopes) == (True, ("b", "a"))
    assert Challenge.of(401, {"www-authenticate": 'Basic realm="x"'}) == Challenge(401)
    assert not Challenge.of(401, {"www-authenticate": header}).wants_scopes


@pytest.mark.parametrize("part", ['"', '"\\', "a ", "a=", 'a=" ', "=", ", ", "a, "])
def test_hostile_header_is_read_in_no_time(part: str) -> None:
    """No header makes the reader go back and forth."""
    started = time.process_time()
    read_challenges(part * 1_000_000)
    assert time.process_time() - started < 1


def test_challenges_of_several_headers_all_count() -> None:
    """A server may send one header for each scheme; of other headers the first counts."""
    joined = join_header("www-authenticate", join_header("www-authenticate", None, 'Basic realm="a"'), "Bearer scope=b")
    assert Challenge.of(401, {"www-authenticate": joined}) == Challenge(401, True, None, "b")
    assert join_header("content-type", "a", "b") == "a"
