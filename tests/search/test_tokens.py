"""What counts as a word."""

from __future__ import annotations

import pytest

from pegboard.search.tokens import pieces, terms, words


@pytest.mark.parametrize(
    "form",
    ["createPullRequest", "create_pull_request", "create-pull-request", "CreatePullRequest", "CREATE_PULL_REQUEST"],
)
def test_every_form_of_an_identifier_is_the_same(form: str) -> None:
    """Camel, snake, kebab and shouting case give the same terms."""
    assert terms(form) == terms("create_pull_request")
    assert terms(form).sequence == ["creat", "pull", "request"]


def test_an_identifier_is_known_as_a_whole_too() -> None:
    """`github` finds `GitHub`, though that is also `git` and `hub`."""
    assert terms("GitHub").aside == terms("github").sequence


def test_a_longer_identifier_is_known_as_a_whole_besides() -> None:
    """Up to six parts, for texts in which somebody copied it; among tools only what people would say is a term."""
    for name, whole in (("getUserById", "getuserbyid"), ("a_b_c_d_e_f", "abcdef")):
        (found,) = pieces(name)
        assert (found.other, found.aside) == ((whole,), ())
    (too_long,) = pieces("a_b_c_d_e_f_g")
    assert too_long.other == ()


def test_letters_and_digits_part() -> None:
    """`s3bucket` and `s3_bucket` are the same."""
    assert terms("s3bucket").sequence == terms("s3_bucket").sequence == ["s", "3", "bucket"]


def test_an_acronym_ends_where_the_next_word_begins() -> None:
    """`getHTTPStatus` is not `get`, `https`, `tatus`."""
    assert terms("getHTTPStatus").sequence == ["get", "http", "status"]


def test_words_are_stemmed() -> None:
    """One form of a word finds the others."""
    assert terms("listing invoices").sequence == terms("list invoice").sequence


def test_stop_words_are_left_out_unless_wanted() -> None:
    """They carry grammar; in a name every word was chosen."""
    assert terms("what is the weather").sequence == ["weather"]
    assert len(terms("what is the weather", stop_words=True).sequence) == 4


def test_an_apostrophe_does_not_part_a_word() -> None:
    """`what's` is a stop word, whichever apostrophe it has."""
    assert terms("what's").sequence == terms("what\N{RIGHT SINGLE QUOTATION MARK}s").sequence == []


def test_accents_width_and_sharp_s_do_not_matter() -> None:
    """Not everybody can type them."""
    assert terms("Größe").sequence == terms("grosse").sequence
    assert terms("\N{FULLWIDTH LATIN SMALL LETTER A}b").sequence == ["ab"]


def test_scripts_without_spaces_are_cut_in_pairs() -> None:
    """Chinese and Japanese words are mostly two characters; single ones stand aside."""
    assert terms("火车票").sequence == ["火车", "车票"]
    assert terms("火车票").aside == ["火", "车", "票"]
    assert terms("本").sequence == ["本"]


def test_scripts_part_from_each_other() -> None:
    """A Latin name within Japanese text is a word."""
    assert "pdf" in terms("本をPDFで保存").sequence


def test_other_scripts_are_words_in_lower_case() -> None:
    """Cyrillic and Greek need no rules of their own."""
    assert terms("Погода ΑΘΗΝΑ").sequence == ["погода", "αθηνα"]


def test_words_are_as_they_are_spelt() -> None:
    """A model of meaning knows words, not stems."""
    assert words("listing the openIssues") == ["listing", "open", "issues"]


def test_a_word_without_end_is_cut() -> None:
    """One token of a megabyte does not become a term of a megabyte."""
    assert len(terms("a" * 1_000_000).sequence[0]) <= 64
