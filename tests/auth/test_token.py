"""A static token: its text, what is kept of it, its name, and when it expires."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import Any

import pytest

from pegboard.access.principal import Principal
from pegboard.access.rule import Rule
from pegboard.auth import token as token_module
from pegboard.auth.expiry import ExpiryError, parse_expiry
from pegboard.auth.token import StaticToken, digest_of, is_token_name, new_token_text, token_id_of
from pegboard.auth.tokens import Tokens

# The first of January 2027, 00:00 UTC.
NEW_YEAR = 1798761600.0
DAY = 86400.0


def test_a_token_is_a_prefix_an_id_and_256_random_bits() -> None:
    """No two are the same, and the id is found in the text."""
    made = [new_token_text() for _ in range(100)]
    for token_id, text in made:
        assert re.fullmatch(r"pgb_[0-9a-z]{12}_[A-Za-z0-9_-]{43}", text)
        assert token_id_of(text) == token_id
    assert len({text for _, text in made}) == len({token_id for token_id, _ in made}) == 100


def test_another_secret_of_a_token_has_its_id() -> None:
    """So that whoever it stands for stays who it is."""
    token_id, text = new_token_text()
    again, other = new_token_text(token_id)
    assert again == token_id == token_id_of(other)
    assert other != text


@pytest.mark.parametrize("text", ["", "pgb_", "pgb_abc_def", "sk-" + "a" * 60, "pgb_" + "a" * 12 + "_" + "!" * 43])
def test_what_has_not_the_form_of_a_token_has_no_id(text: str) -> None:
    """Nothing is looked up for it."""
    assert token_id_of(text) is None


def test_what_is_kept_is_a_digest_that_is_not_shown() -> None:
    """Not even in an error that shows the object."""
    token_id, text = new_token_text()
    token = StaticToken(token_id, "ci", digest_of(text))
    assert token.digest == hashlib.sha256(text.encode()).digest()
    assert text not in repr(token)
    assert str(token.digest) not in repr(token)


def test_texts_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the function that is made for it, the right one and the wrong one alike."""
    compared: list[tuple[Any, Any]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return hmac.compare_digest(one, other)

    token_id, text = new_token_text()
    _, wrong = new_token_text(token_id)
    monkeypatch.setattr(token_module, "hmac", type("Hmac", (), {"compare_digest": staticmethod(compare)}))
    token = StaticToken(token_id, "ci", digest_of(text))
    assert token.fits(text)
    assert not token.fits(wrong)
    assert [one for one, _ in compared] == [token.digest, token.digest]


@pytest.mark.parametrize("name", ["ci", "laptop-2", "a.b_c", "me@example", "0", "x" * 64])
def test_names_that_a_token_can_have(name: str) -> None:
    """Plain words, and addresses."""
    assert is_token_name(name)


@pytest.mark.parametrize("name", ["", " ", "-x", ".x", "a b", "a/b", "a*", "é", "x" * 65, "a\n"])
def test_names_that_no_token_can_have(name: str) -> None:
    """What would be an option, a path, a pattern, or cannot be told apart."""
    assert not is_token_name(name)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("30d", NEW_YEAR + 30 * DAY),
        ("12h", NEW_YEAR + DAY / 2),
        ("90m", NEW_YEAR + 5400),
        ("5s", NEW_YEAR + 5),
        (" 2w ", NEW_YEAR + 14 * DAY),
        ("2027-01-02", NEW_YEAR + DAY),
        ("2027-01-01T01:00:00", NEW_YEAR + 3600),
        ("2027-01-01T01:00:00+01:00", None),
        ("2027-01-01T02:00:00+01:00", NEW_YEAR + 3600),
        ("2027-01-01", None),
        ("2026-01-01", None),
        ("0d", None),
        ("d", None),
        ("30", None),
        ("30 days", None),
        ("2027-13-01", None),
        ("9999-12-31", None),
        ("999999999w", None),
        ("", None),
    ],
)
def test_when_a_token_expires(text: str, moment: float | None) -> None:
    """In some time, or on a day; what is over, too far away or no time at all is refused."""
    if moment is not None:
        assert parse_expiry(text, NEW_YEAR) == moment
        return
    with pytest.raises(ExpiryError, match="expires must be"):
        parse_expiry(text, NEW_YEAR)


def test_an_expired_token_is_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """From the very moment on; it is still listed as expired."""
    token_id, text = new_token_text()
    tokens = Tokens(lambda token: Principal("token", token.id, token.name), lambda _: None)
    tokens.replace([StaticToken(token_id, "ci", digest_of(text), expires_at=1000.0)])
    for now, is_found in ((999.9, True), (1000.0, False), (2000.0, False)):
        monkeypatch.setattr("time.time", lambda now=now: now)
        assert (tokens.find(text) is not None) is is_found
        assert bool(tokens.list_live()) is is_found
        assert [token.name for token in tokens.list_expired()] == ([] if is_found else ["ci"])


def test_what_is_under_way_goes_on_under_another_rule_and_hears_of_another_secret() -> None:
    """Whoever listens to the first principal hears who follows it, and who follows that one."""
    token_id, text = new_token_text()
    successors: list[Principal] = []
    tokens = Tokens(lambda token: Principal("token", token.id, token.name), successors.append)
    tokens.replace([StaticToken(token_id, "ci", digest_of(text))])
    first = tokens.find(text)
    assert first is not None
    heard: list[Principal | None] = []
    forget = first.on_end(heard.append)
    tokens.replace([StaticToken(token_id, "robot", digest_of(text), Rule(read_only=True))])
    second = tokens.find(text)
    assert second is not None
    assert (second.name, first.valid_until, heard, successors) == ("robot", 0.0, [second], [second])
    tokens.replace([StaticToken(token_id, "robot", digest_of("another"), Rule(read_only=True))])
    third = second.successor
    assert third is not None
    assert (second.valid_until, heard, successors) == (0.0, [second, third], [second, third])
    assert (second.has_other_secret, third.has_other_secret) == (False, True)
    forget()
    third.end()
    assert len(heard) == 2


def test_a_token_with_another_rule_secret_or_expiry_is_another_principal() -> None:
    """Whoever came with it before is not let in by what was known then; that it was used changes nothing."""
    token_id, text = new_token_text()
    tokens = Tokens(lambda token: Principal("token", token.id, token.name), lambda _: None)
    first = StaticToken(token_id, "ci", digest_of(text))
    tokens.replace([first])
    before = tokens.find(text)
    assert before is not None
    tokens.replace([StaticToken(token_id, "ci", digest_of(text), last_used_at=5.0)])
    assert tokens.find(text) is before
    tokens.replace([StaticToken(token_id, "ci", digest_of(text), expires_at=10.0**12)])
    assert before.valid_until == 0.0
    assert tokens.find(text) is not before
    assert tokens.replace([]) == [token_id]
    assert tokens.find(text) is None
