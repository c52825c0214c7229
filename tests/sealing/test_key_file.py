"""The key of this machine: a file of its user alone, one for all processes; or an entry of the keyring."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from pegboard.config import state_folder
from pegboard.sealing import Sealer, SealingError, Unsealable, open_sealer
from pegboard.sealing.key_file import KeyFile
from pegboard.sealing.secret_key import parse_keys
from sealing.chest import BACKEND
from storage.samples import at_once

pytestmark = pytest.mark.anyio
ROW = ("oauth_grants", "linear", "")
OPEN = """
import asyncio, os, sys
from pegboard.config import state_folder
from pegboard import system_keyring
from pegboard.sealing import open_sealer

system_keyring.LIMIT = float(os.environ.get("KEYRING_LIMIT", "20"))
print("ready", flush=True)
sys.stdin.readline()
sealer = asyncio.run(open_sealer(sys.argv[1], {}, state_folder()))
print(sealer.keys[0].name, sealer.place)
"""


async def open_own(storage: str = "sqlite") -> Sealer:
    """A sealer with the key of this machine."""
    return await open_sealer(storage, {}, state_folder())


@pytest.fixture
def chest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a keyring that works, for processes of their own."""
    folder = tmp_path / "chest"
    folder.mkdir()
    (tmp_path / "chest_backend.py").write_text(BACKEND)
    monkeypatch.setenv("CHEST", str(folder))
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "chest_backend.Chest")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return folder


def open_elsewhere(storage: str = "sqlite") -> tuple[str, str]:
    """The id of the key that another process seals with, and where it is."""
    name, _, place = at_once(OPEN, storage, [""])[0].strip().partition(" ")
    return name, place


@pytest.mark.skipif(os.name == "nt", reason="modes of files are POSIX")
@pytest.mark.scenario("secrets: The key of a machine is its user's alone")
async def test_a_key_is_made_once_for_its_user_alone() -> None:
    """Beside the database, whatever the umask; the next process finds it."""
    umask = os.umask(0)
    try:
        sealed = (await open_own()).seal(b"secret", ROW)
    finally:
        os.umask(umask)
    file = state_folder() / "secret.key"
    assert file.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in state_folder().iterdir()] == ["secret.key"]
    again = await open_own()
    assert again.unseal(sealed, ROW) == b"secret"
    assert again.place == str(file)
    assert parse_keys(file.read_text()) == again.keys


async def test_the_key_is_beside_a_database_that_was_named(tmp_path: Path) -> None:
    """In its folder."""
    await open_own(f"sqlite:{tmp_path / 'data' / 'x.db'}")
    assert (tmp_path / "data" / "secret.key").is_file()
    assert not state_folder().exists()


@pytest.mark.scenario("secrets: The key of a machine is its user's alone")
def test_processes_that_need_a_key_at_once_have_the_same() -> None:
    """Each of eight tries to make it; one key is left, and nothing else."""
    said = at_once(OPEN, "sqlite", [str(number) for number in range(8)])
    assert len(set(said)) == 1
    assert [each.name for each in state_folder().iterdir()] == ["secret.key"]


@pytest.mark.skipif(os.name == "nt", reason="modes of files are POSIX")
@pytest.mark.scenario("secrets: The key of a machine is its user's alone")
async def test_a_key_that_others_could_read_is_narrowed_and_said() -> None:
    """With a line in the log that names the file and the modes."""
    keys = (await open_own()).keys
    file = state_folder() / "secret.key"
    file.chmod(0o644)
    with capture_logs() as lines:
        assert (await open_own()).keys == keys
    assert file.stat().st_mode & 0o777 == 0o600
    (line,) = [line for line in lines if line["event"] == "secrets.key.readable"]
    assert (line["place"], line["mode"], line["now"]) == (str(file), "0644", "0600")


@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("mode", [0o600, 0o644])
@pytest.mark.scenario("secrets: The key of a machine is its user's alone")
async def test_a_key_of_somebody_else_is_refused(mode: int) -> None:
    """Whatever its mode: they know it. It is left as it is, also by root."""
    await open_own()
    file = state_folder() / "secret.key"
    file.chmod(mode)
    os.chown(file, 12345, -1)
    with pytest.raises(
        SealingError, match=rf"another user \(uid 12345, mode {mode:04o}\).*runs as uid 0: run Pegboard as"
    ):
        await open_own()
    status = file.stat()
    assert (status.st_uid, status.st_mode & 0o777) == (12345, mode)


@pytest.mark.scenario("secrets: A lost key is said, and breaks nothing else")
@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "it is empty"), (b"hunter2", "key 1 of it"), (b"\xff\xfe", "it is not text")]
)
async def test_a_key_file_that_was_damaged_is_an_error_that_says_what_to_do(content: bytes, reason: str) -> None:
    """It is not written over: somebody may have a backup."""
    state_folder().mkdir()
    file = state_folder() / "secret.key"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(SealingError, match=f"secret.key cannot be used: {reason}.*put a backup in its place") as raised:
        await open_own()
    assert str(file) not in raised.value.error.message
    assert file.read_bytes() == content


@pytest.mark.scenario("secrets: A lost key is said, and breaks nothing else")
async def test_with_the_file_gone_a_new_key_seals_and_the_old_secrets_say_why_they_cannot_be_read() -> None:
    """A sealer that runs keeps its key, since it is all there is."""
    running = await open_own()
    sealed = running.seal(b"secret", ROW)
    (state_folder() / "secret.key").unlink()
    assert running.unseal(running.seal(b"go on", ROW), ROW) == b"go on"
    assert not (state_folder() / "secret.key").exists()
    later = await open_own()
    with pytest.raises(Unsealable, match="is not there: bring it back, or sign in again"):
        later.unseal(sealed, ROW)
    new = later.seal(b"new", ROW)
    assert later.unseal(new, ROW) == b"new"
    assert [running.unseal(each, ROW) for each in (sealed, new)] == [b"secret", b"new"]


@pytest.mark.scenario("secrets: The key can be changed while gateways run")
async def test_a_running_sealer_notices_a_new_key_in_the_file() -> None:
    """What it seals next has the new key, and it opens what the old one and the new one sealed."""
    running, sealing = await open_own(), await open_own()
    before = running.seal(b"before", ROW)
    file = KeyFile(state_folder() / "secret.key")
    new = file.rotate(())
    assert sealing.seal(b"next", ROW)[:8] == new.id
    elsewhere = (await open_own()).seal(b"elsewhere", ROW)
    assert elsewhere[:8] == new.id
    assert running.unseal(elsewhere, ROW) == b"elsewhere"
    assert running.unseal(before, ROW) == b"before"
    assert running.seal(b"after", ROW)[:8] == new.id
    oldest = running.keys[1]
    newest = file.rotate(())
    assert [key.id for key in file.load()] == [newest.id, new.id]
    file.rotate([new.id, oldest.id])
    assert [key.id for key in file.load()][1:] == [newest.id, new.id]


# The keyring


def test_a_keyring_that_works_has_the_key(chest: Path) -> None:
    """The file names the entry and holds no key; all processes have the same, whoever was first."""
    said = at_once(OPEN, "sqlite", [str(number) for number in range(4)])
    assert len(set(said)) == 1
    name, _, place = said[0].strip().partition(" ")
    assert place.startswith("the keyring of this user")
    (entry,) = chest.iterdir()
    assert parse_keys(entry.read_text())[0].name == name
    text = (state_folder() / "secret.key").read_text()
    assert text == f"keyring:{entry.name.removeprefix('pegboard ')}\n"


@pytest.mark.parametrize("mode", ["fails", "forgets", "hangs"])
def test_a_keyring_that_does_not_keep_what_it_is_given_is_not_used(
    chest: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried by a write and a read, within a time limit; the file has the key then."""
    monkeypatch.setenv("CHEST_MODE", mode)
    if mode == "hangs":
        monkeypatch.setenv("KEYRING_LIMIT", "0.5")
    name, place = open_elsewhere()
    assert place == str(state_folder() / "secret.key")
    assert parse_keys(Path(place).read_text())[0].name == name
    assert chest.is_dir()


@pytest.mark.parametrize(
    "backend", ["chest_backend.PlaintextChest", "keyring.backends.null.Keyring", "keyring.backends.fail.Keyring"]
)
def test_a_keyring_that_keeps_plain_text_or_nothing_is_refused(
    chest: Path, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its name; nothing is written into it."""
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", backend)
    assert open_elsewhere()[1] == str(state_folder() / "secret.key")
    assert list(chest.iterdir()) == []


@pytest.mark.scenario("secrets: A lost key is said, and breaks nothing else")
def test_a_key_in_a_keyring_that_cannot_be_read_is_an_error_and_no_other_is_made(
    chest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As over SSH, where the keyring of the desktop is locked."""
    name, _ = open_elsewhere()
    text = (state_folder() / "secret.key").read_text()
    script = OPEN.replace('print("ready", flush=True)\nsys.stdin.readline()\n', "")
    command = [sys.executable, "-c", script, "sqlite"]
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "is in the keyring of this user" in done.stderr
    assert "unlock the keyring" in done.stderr
    assert (state_folder() / "secret.key").read_text() == text
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "chest_backend.Chest")
    assert open_elsewhere()[0] == name


def test_a_key_in_a_keyring_is_rotated_there(chest: Path) -> None:
    """A running sealer notices; the entry before is taken out."""
    script = """
import asyncio, sys, time
from pegboard.config import state_folder
from pegboard import system_keyring
from pegboard.sealing import Unsealable, open_sealer
from pegboard.sealing.key_file import KeyFile
system_keyring.LIMIT = 20
def open_own():
    return asyncio.run(open_sealer("sqlite", {}, state_folder()))
row = ("t", "k")
running = open_own()
before = running.seal(b"before", row)
new = KeyFile(state_folder() / "secret.key").rotate(())
sealed = open_own().seal(b"elsewhere", row)
deadline = time.monotonic() + 60
while True:
    try:
        assert running.unseal(sealed, row) == b"elsewhere"
        break
    except Unsealable as exc:
        # Read in the background, so that the event loop never waits for a keyring.
        assert exc.error.retryable and time.monotonic() < deadline, exc
        time.sleep(0.02)
assert running.seal(b"after", row)[:8] == new.id
assert running.unseal(before, row) == b"before"
print(new.name)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (entry,) = chest.iterdir()
    keys = parse_keys(entry.read_text())
    assert (keys[0].name, len(keys)) == (done.stdout.strip(), 2)
