"""SQL is written with `?` for values; whatever else looks like one stays."""

import pytest

from pegboard.storage.placeholders import with_percents


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("SELECT 1", "SELECT 1"),
        ("SELECT ?, ?", "SELECT %s, %s"),
        ("a LIKE ? ESCAPE '?'", "a LIKE %s ESCAPE '?'"),
        ("a = 'it''s ?' AND b = ?", "a = 'it''s ?' AND b = %s"),
        ("a LIKE '50 %' AND 7 % ? = 1", "a LIKE '50 %%' AND 7 %% %s = 1"),
        ('SELECT "odd ? name", ?', 'SELECT "odd ? name", %s'),
        ("SELECT ? -- what?\n, ?", "SELECT %s -- what?\n, %s"),
        ("SELECT ? /* why?\n100 % */ , ?", "SELECT %s /* why?\n100 %% */ , %s"),
        ("SELECT E'it\\'s ?', ?", "SELECT E'it\\'s ?', %s"),
        ("SELECT 'back\\', ?", "SELECT 'back\\', %s"),
        ("DO $$ SELECT '?' $$; SELECT ?", "DO $$ SELECT '?' $$; SELECT %s"),
        ("DO $a$ $$ ? $a$; SELECT ?", "DO $a$ $$ ? $a$; SELECT %s"),
        ("SELECT 'größe ?', ?", "SELECT 'größe ?', %s"),
        ("SELECT '%s', ?", "SELECT '%%s', %s"),
        ("SELECT '', ?, ''", "SELECT '', %s, ''"),
    ],
)
def test_a_question_mark_is_a_value_only_outside_of_quotes(written: str, sent: str) -> None:
    """Texts, names and comments keep theirs, and percent signs come out as they went in."""
    assert with_percents(written) == sent.encode()
