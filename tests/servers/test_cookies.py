"""Cookies: what a load balancer wants to hear again."""

from __future__ import annotations

import pytest

from pegboard.servers.http.cookies import Cookies


@pytest.mark.parametrize(
    ("said", "header"),
    [
        ("AWSALB=a/b+c==; Expires=Mon, 16 Nov 2099 10:00:00 GMT; Path=/", "AWSALB=a/b+c=="),
        ("a=1; Path=/; Secure; HttpOnly; SameSite=None; Partitioned; Priority=High; New", "a=1"),
        ("a=1; Max-Age=3600\nb=2\na=3", "a=3; b=2"),
        ('a="quoted value"; Path=/', 'a="quoted value"'),
        ("a={json: [1]}", "a={json: [1]}"),
        ("ü=ö", "ü=ö"),
        ("  a = 1 ", "a=1"),
        ("a=1; expires=Mon, 01 Jan 99999999 00:00:00 GMT", "a=1"),
        ("a", None),
        ("=1", None),
        ("a=" + "x" * 5000, None),
        ("", None),
        (None, None),
    ],
)
def test_a_cookie_is_said_again_as_it_was_set(said: str | None, header: str | None) -> None:
    """Whatever attributes it has, those that nobody knew yet when this was written included."""
    cookies = Cookies()
    assert cookies.take(said) is (header is not None)
    assert cookies.header == header
    assert cookies.take(said) is False or said == "a=1; Max-Age=3600\nb=2\na=3"


@pytest.mark.parametrize(
    "said",
    [
        "a=1; Max-Age=0",
        "a=1; max-age=-1",
        "a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "a=1; expires=Thu, 01-Jan-1970 00:00:00 GMT; Path=/",
        "a=",
        "a=; Path=/",
    ],
)
def test_a_cookie_that_is_over_is_forgotten(said: str) -> None:
    """However a server says so."""
    cookies = Cookies()
    cookies.take("a=0\nb=1")
    assert cookies.take(said)
    assert cookies.header == "b=1"


@pytest.mark.parametrize("age", ["7200", "9" * 5000, "soon"])
def test_the_age_of_a_cookie_goes_before_its_date(age: str) -> None:
    """And an age that is none does not."""
    cookies = Cookies()
    cookies.take(f"a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age={age}")
    assert cookies.header == (None if age == "soon" else "a=1")


def test_nobody_can_have_us_carry_cookies_without_end() -> None:
    """Beyond a number of them only those that are known are changed."""
    cookies = Cookies()
    cookies.take("\n".join(f"c{number}=1" for number in range(1000)))
    cookies.take("c0=2")
    assert cookies.header is not None
    assert cookies.header.count("=") == 50
    assert cookies.header.startswith("c0=2;")
