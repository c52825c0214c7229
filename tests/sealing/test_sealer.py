"""What a sealed secret is, what opens it, and how a sealer follows its keys."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard.config import state_folder
from pegboard.sealing import Sealer, SealingError, Unsealable, open_sealer
from pegboard.sealing.secret_key import SecretKey, parse_keys

pytestmark = pytest.mark.anyio
ROW = ("oauth_grants", "linear", "")
OLD, NEW = SecretKey.of(bytes(range(200, 232))), SecretKey.of(bytes(range(32)))


async def open_with(*keys: SecretKey, storage: str = "sqlite") -> Sealer:
    """A sealer with keys of the environment."""
    return await open_sealer(storage, {"PEGBOARD_SECRET_KEY": ",".join(key.text for key in keys)}, state_folder())


@pytest.mark.scenario("secrets: Secrets are sealed and bound to their row")
async def test_a_secret_is_opened_by_its_key_and_its_context() -> None:
    """Sealed twice, it looks different each time; nothing of it can be seen."""
    sealer = await open_with(OLD)
    sealed = [sealer.seal(b"refresh token", ROW) for _ in range(2)]
    assert sealed[0] != sealed[1]
    assert all(each[:8] == OLD.id and b"refresh" not in each for each in sealed)
    assert [sealer.unseal(each, ROW) for each in sealed] == [b"refresh token"] * 2
    assert sealer.unseal(sealer.seal(b"", ROW), ROW) == b""


@pytest.mark.scenario("secrets: Secrets are sealed and bound to their row")
@pytest.mark.parametrize(
    "other",
    [
        ("oauth_grants", "linear", "token:1"),
        ("oauth_grants", "linea", "r"),
        ("oauth_grants", "linear"),
        ("oauth_grants", "linear", "", ""),
        ("oauth_clients", "linear", ""),
        (),
    ],
)
async def test_a_secret_of_another_row_is_refused(other: tuple[str, ...]) -> None:
    """Whoever can write into the database gives nobody somebody else's sign-in."""
    sealer = await open_with(OLD)
    with pytest.raises(Unsealable, match="stands in a row that is not its own"):
        sealer.unseal(sealer.seal(b"secret", ROW), other)


@pytest.mark.parametrize("at", [8, 19, 20, -1])
async def test_a_secret_that_was_changed_is_refused(at: int) -> None:
    """In its nonce, its text or its tag; so is one that was cut."""
    sealer = await open_with(OLD)
    sealed = bytearray(sealer.seal(b"secret", ROW))
    sealed[at] ^= 1
    for broken in (bytes(sealed), bytes(sealed[:-1]), bytes(sealed[:20]), b""):
        with pytest.raises(Unsealable, match="was changed"):
            sealer.unseal(broken, ROW)


@pytest.mark.scenario("secrets: A lost key is said, and breaks nothing else")
async def test_a_secret_whose_key_is_lost_says_what_to_do() -> None:
    """Its message is for everybody, and holds nothing of it."""
    sealed = (await open_with(OLD)).seal(b"secret", ROW)
    sealer = await open_with(NEW)
    with pytest.raises(Unsealable) as raised:
        sealer.unseal(sealed, ROW)
    assert "the key that sealed it is not there: bring it back, or sign in again" in raised.value.error.message
    assert not raised.value.error.retryable
    assert sealer.unseal(sealer.seal(b"another", ROW), ROW) == b"another"


async def test_of_several_keys_the_first_seals_and_all_open() -> None:
    """What an old one sealed is to be sealed anew."""
    sealed = (await open_with(OLD)).seal(b"secret", ROW)
    sealer = await open_with(NEW, OLD)
    assert sealer.unseal(sealed, ROW) == b"secret"
    assert sealer.needs_reseal(sealed)
    anew = sealer.seal(b"secret", ROW)
    assert anew[:8] == NEW.id
    assert not sealer.needs_reseal(anew)


def test_keys_are_read_in_the_ways_people_write_them() -> None:
    """Base64 of both kinds, with and without padding, hexadecimal digits; commas, lines and remarks."""
    url_safe = OLD.text.replace("+", "-").replace("/", "_").rstrip("=")
    assert parse_keys(f"# made in May\n{OLD.text}\r\n\n {NEW.key.hex()} , {url_safe}\n") == (OLD, NEW)


@pytest.mark.parametrize("text", ["", " ,\n", "# only a remark", "hunter2", "x" * 44, OLD.text[:-8], OLD.text + "AAAA"])
def test_a_text_that_is_no_key_is_refused_and_not_quoted(text: str) -> None:
    """A password is not a key."""
    with pytest.raises(ValueError, match=r"it is empty|is not 32 bytes") as raised:
        parse_keys(text)
    assert not text.strip(" ,\n") or text.strip(" ,\n#") not in str(raised.value)


@pytest.mark.scenario("secrets: PostgreSQL needs a key of the environment")
async def test_postgres_needs_a_key_of_the_environment() -> None:
    """A file of one machine would differ from those of others; the error says what to set, and no file is made."""
    with pytest.raises(SealingError, match=r"set PEGBOARD_SECRET_KEY to the same key .* `pegboard secrets key`"):
        await open_sealer("postgresql://h/d", {"PEGBOARD_SECRET_KEY": " "}, state_folder())
    assert not state_folder().exists()
    assert (await open_with(OLD, storage="postgresql://h/d")).keys == (OLD,)


async def test_a_variable_that_is_no_key_is_an_error_without_its_value() -> None:
    """It names the variable."""
    with pytest.raises(SealingError, match="PEGBOARD_SECRET_KEY cannot be used: key 1") as raised:
        await open_sealer("sqlite", {"PEGBOARD_SECRET_KEY": "hunter2"}, state_folder())
    assert "hunter2" not in str(raised.value) + str(raised.value.error)


async def test_a_file_that_the_environment_names_is_followed(tmp_path: Path) -> None:
    """A running sealer seals with a new key as soon as the file has it, and opens what it sealed in another process."""
    file = tmp_path / "mounted"
    file.write_text(f"{OLD.text}\n")
    environment = {"PEGBOARD_SECRET_KEY_FILE": str(file)}
    running = await open_sealer("postgresql://h/d", environment, state_folder())
    sealed = running.seal(b"secret", ROW)
    file.write_text(f"{NEW.text}\n{OLD.text}\n")
    elsewhere = (await open_sealer("sqlite", environment, state_folder())).seal(b"another", ROW)
    assert elsewhere[:8] == NEW.id
    assert running.unseal(elsewhere, ROW) == b"another"
    assert running.seal(b"third", ROW)[:8] == NEW.id
    assert running.unseal(sealed, ROW) == b"secret"
    file.unlink()
    # What is known stays in force.
    assert running.unseal(running.seal(b"fourth", ROW), ROW) == b"fourth"
    with pytest.raises(SealingError, match=r"mounted \(PEGBOARD_SECRET_KEY_FILE\) cannot be read: No such file"):
        await open_sealer("sqlite", environment, state_folder())


async def test_whoever_moves_the_key_into_the_environment_loses_nothing() -> None:
    """What the file sealed is opened, and sealed anew with the key of the environment."""
    sealed = (await open_sealer("sqlite", {}, state_folder())).seal(b"secret", ROW)
    sealer = await open_with(NEW)
    assert sealer.unseal(sealed, ROW) == b"secret"
    assert sealer.needs_reseal(sealed)
    assert (sealer.place, sealer.keys[0]) == ("PEGBOARD_SECRET_KEY", NEW)


@pytest.mark.scenario("secrets: Nothing is loaded while nobody signs in")
@pytest.mark.parametrize(
    "module", ["pegboard.sealing", "pegboard.board", "pegboard.cli.app", "pegboard.gateway.rest.app"]
)
def test_neither_the_cipher_nor_the_keyring_is_loaded_before_it_is_needed(module: str) -> None:
    """They cost a start a tenth of a second."""
    script = f"import sys, {module}; print([name for name in ('cryptography', 'keyring') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stdout == "[]\n"
