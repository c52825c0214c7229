"""The rule book: whom the rules of a config name."""

from __future__ import annotations

import pytest

from pegboard.access.rule import Rule
from pegboard.access.settings import AuthSettings
from pegboard.auth.rule_book import RuleBook
from pegboard.auth.token import StaticToken

ID = "ci0123456789"


@pytest.mark.parametrize(
    ("who", "is_named"),
    [
        ("token:nightly", True),
        ("token:night*", True),
        ("token:*", True),
        (f"token:{ID}", True),
        ("token:ci*", False),
        (f"token:{ID[:-1]}?", False),
        ("token:other", False),
        ("*", False),
    ],
)
def test_a_rule_names_a_token_by_its_name_or_by_its_whole_id(who: str, *, is_named: bool) -> None:
    """An id is random, so a pattern never means it: else `token:ci*` would name some other token by chance."""
    rule = Rule(who=(who,))
    book = RuleBook(AuthSettings(rules=(rule,)), lambda _: ())
    token = StaticToken(ID, "nightly", b"")
    assert book.rule_of_token(token) == ((1, rule) if is_named else (0, None))
