"""The address of a database can be shown; its password cannot."""

import pytest

from pegboard.storage import StorageError, open_storage
from pegboard.storage.address import PostgresAddress


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:tulip-42@db.example:5433/pegboard", "postgresql://ada@db.example:5433/pegboard"),
        ("postgres://ada:tulip-42@db.example", "postgresql://ada@db.example"),
        ("postgresql://ada@db.example/pegboard", "postgresql://ada@db.example/pegboard"),
        ("postgresql:///pegboard?host=/run/postgresql&user=ada&password=tulip-42", "postgresql:///pegboard"),
        ("postgresql://ada:tulip:42?x#y@[::1]:5432/p?sslmode=require", "postgresql://ada@[::1]:5432/p"),
        ("postgresql://:tulip-42@a:1,b:2/p", "postgresql://a:1,b:2/p"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    """User, host, port and database are there to be recognised; password and options are not."""
    address = PostgresAddress.parse(url)
    assert address.shown == open_storage(url).database.name == shown
    assert "tulip" not in repr(address)
    assert "tulip" not in repr(open_storage(url).database)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:tulip/42@host/db",
        "postgresql://ada:tulip@42@host/db",
        "postgresql://ada:tulip-42@host:port/db",
        "postgresql://ada:tulip-42%zz@host/db",
        "postgresql://ada:tulip-42@host/db?tulip=1",
        "postgresql://ada:tulip-42@[::1/db",
        "postgresql://ada:tulip-42@host/db/more",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_without_a_word_of_it(url: str) -> None:
    """The message shows how one is written; not even what caused it has the password."""
    with pytest.raises(StorageError, match=r"write postgresql://USER:PASSWORD@HOST:PORT/DATABASE") as raised:
        open_storage(url)
    assert "tulip" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or raised.value.__suppress_context__


def test_messages_are_cleaned_of_every_form_of_a_password() -> None:
    """As it stands in the address and as it is meant, on one line."""
    address = PostgresAddress.parse("postgresql://ada:p%40ss-1@host/db?sslpassword=rose%2D17")
    assert address.clean("p@ss-1\n  p%40ss-1 rose-17") == "[redacted] [redacted] [redacted]"
