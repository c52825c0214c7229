"""`pegboard secrets`: where the key is, what it sealed, and another key while everything runs."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from auth.test_secrets_at_rest import find_text
from forking import warm_start
from harness import LIMIT, write_config
from pegboard.config import state_folder
from pegboard.sealing import Sealer, open_sealer
from pegboard.sealing.secret_key import SecretKey
from pegboard.storage import Storage, open_storage
from pegboard.storage.oauth import FlowRow, GrantRow, client_context
from storage.oauth_samples import GRANT, flow

pytestmark = pytest.mark.anyio
R = TypeVar("R", GrantRow, FlowRow)
CLIENT = ("https://login.example", "http://127.0.0.1:7420/oauth/callback")


class Pegboard:
    """The commands of a config with this storage."""

    def __init__(self, folder: Path, place: str) -> None:
        self.config = write_config(folder / "pegboard.json", {}, storage=place)

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """What a command says."""
        command = [*warm_start(), "secrets", *words, "--config", str(self.config)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT, check=False, env={**os.environ, **environment}
        )

    def data(self, *words: str, **environment: str) -> dict[str, Any]:
        """What a command answers to programs."""
        done = self.run(*words, "--json", **environment)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)["data"]


async def fill(storage: Storage, sealer: Sealer, grants: int = 3) -> None:
    """A registration, some grants and a sign-in under way, each with a secret of its own."""
    store = storage.oauth
    await store.save_client(*CLIENT, sealer.seal(b"client secret", client_context(*CLIENT)))
    for number in range(grants):
        row = with_seal(replace(GRANT, server=f"s{number}"), sealer, f"refresh token {number}")
        assert await store.save_grant(row, expected_version=None)
    await store.save_flow(with_seal(flow("s"), sealer, "verifier"))


def with_seal(row: R, sealer: Sealer, clear: str) -> R:
    """A row with this secret."""
    return replace(row, sealed=sealer.seal(clear.encode(), row.context))


async def read_all(storage: Storage, sealer: Sealer) -> set[bytes]:
    """Every secret that is kept, in clear."""
    return {sealer.unseal(row.sealed, row.context) for row in await storage.oauth.list_secrets()}


ALL = {b"client secret", b"verifier", *(f"refresh token {number}".encode() for number in range(3))}


async def test_before_the_first_sign_in_there_is_no_key(tmp_path: Path) -> None:
    """The command says where it will be, and makes none; there is nothing to rotate."""
    place = f"sqlite:{tmp_path / 'data' / 'x.db'}"
    pegboard = Pegboard(tmp_path, place)
    done = pegboard.run()
    assert "There is no key yet" in done.stdout
    assert "Nothing is sealed yet" in done.stdout
    assert pegboard.data()["isMade"] is False
    done = pegboard.run("rotate")
    assert (done.returncode, "there is no key yet" in done.stderr) == (1, True)
    assert not (tmp_path / "data" / "secret.key").exists()


async def test_what_is_in_the_way_is_said_to_programs_too(tmp_path: Path) -> None:
    """With --json it is an error of the usual shape; a key that cannot be used is not said to be none."""
    pegboard = Pegboard(tmp_path, f"sqlite:{tmp_path / 'x.db'}")
    for environment in ({}, {"PEGBOARD_SECRET_KEY": "short"}):
        done = pegboard.run("rotate", "--json", **environment)
        assert (done.returncode, json.loads(done.stdout)["success"]) == (1, False)
        assert "key" in json.loads(done.stdout)["error"]["message"]
    assert "There is no key that can be used: PEGBOARD_SECRET_KEY" in pegboard.run(PEGBOARD_SECRET_KEY="short").stdout


@pytest.mark.scenario("secrets: The key can be changed while gateways run")
async def test_a_key_of_a_file_is_rotated_while_others_read_and_write(tmp_path: Path) -> None:
    """Whoever runs keeps reading and saving throughout; at the end, all is sealed with the new key, and the next
    rotation takes away the one before."""
    place = f"sqlite:{tmp_path / 'x.db'}"
    pegboard, storage = Pegboard(tmp_path, place), open_storage(place)
    await storage.open()
    try:
        running = await open_sealer(place, {}, state_folder())
        await fill(storage, running)
        (first,) = pegboard.data()["keys"]
        assert first == {"id": running.keys[0].name, "secrets": 5, "isThere": True, "seals": True}
        rotating = asyncio.create_task(asyncio.to_thread(pegboard.data, "rotate"))
        renewals = 0
        while not rotating.done() or not renewals:
            row = await storage.oauth.load_grant("s0", "")
            assert row is not None
            assert running.unseal(row.sealed, row.context) == b"refresh token 0"
            renewed = with_seal(row, running, "refresh token 0")
            renewals += await storage.oauth.save_grant(renewed, expected_version=row.version)
            await asyncio.sleep(0.002)
        done = await rotating
        assert done["resealed"] >= 4
        new, old = done["keys"]
        assert (new["seals"], new["secrets"], old["id"], old["secrets"]) == (True, 5, first["id"], 0)
        assert await read_all(storage, running) == ALL
        assert {row.sealed[:8].hex() for row in await storage.oauth.list_secrets()} == {new["id"]}
        again = pegboard.run("rotate")
        assert "5 secrets were sealed anew" in again.stdout
        assert [key["id"] for key in pegboard.data()["keys"]][1:] == [new["id"]]
        assert await read_all(storage, running) == ALL
    finally:
        await storage.close()


@pytest.mark.scenario("secrets: The key can be changed while gateways run")
async def test_a_key_of_the_environment_is_changed_by_its_owner(tmp_path: Path, place: str) -> None:
    """The command says what to set. With both keys set it seals everything anew, and the old one is not needed."""
    pegboard, storage = Pegboard(tmp_path, place), open_storage(place)
    old, new = SecretKey.make().text, subprocess.check_output([*warm_start(), "secrets", "key"], text=True).strip()
    await storage.open()
    try:
        await fill(storage, await open_sealer(place, {"PEGBOARD_SECRET_KEY": old}, state_folder()))
        done = pegboard.run("rotate", PEGBOARD_SECRET_KEY=old)
        assert done.returncode == 1
        assert "Set PEGBOARD_SECRET_KEY=NEW,OLD" in done.stderr
        assert old not in done.stderr + done.stdout
        data = pegboard.data("rotate", PEGBOARD_SECRET_KEY=f"{new},{old}")
        assert (data["resealed"], [key["secrets"] for key in data["keys"]]) == (5, [5, 0])
        later = await open_sealer(place, {"PEGBOARD_SECRET_KEY": new}, state_folder())
        assert await read_all(storage, later) == ALL
    finally:
        await storage.close()


@pytest.mark.scenario("secrets: A lost key is said, and breaks nothing else")
async def test_secrets_whose_key_is_lost_are_named(tmp_path: Path, place: str) -> None:
    """With the key's id; those that can be read are sealed anew nevertheless, and the command fails."""
    pegboard, storage = Pegboard(tmp_path, place), open_storage(place)
    lost, old, new = SecretKey.make(), SecretKey.make(), SecretKey.make()
    await storage.open()
    try:
        await fill(storage, await open_sealer(place, {"PEGBOARD_SECRET_KEY": lost.text}, state_folder()), grants=2)
        sealer = await open_sealer(place, {"PEGBOARD_SECRET_KEY": old.text}, state_folder())
        assert await storage.oauth.save_grant(with_seal(GRANT, sealer, "mine"), expected_version=None)
        environment = {"PEGBOARD_SECRET_KEY": f"{new.text},{old.text}"}
        data = pegboard.data(**environment)
        assert {"id": lost.name, "secrets": 4, "isThere": False, "seals": False} in data["keys"]
        assert sorted(data["unreadable"]) == [
            "registration at https://login.example",
            "sign-in to s0",
            "sign-in to s1",
            "unfinished sign-in to linear",
        ]
        done = pegboard.run("rotate", **environment)
        assert (done.returncode, "1 secret was sealed anew" in done.stdout) == (1, True)
        assert "  sign-in to s0" in done.stderr
        row = await storage.oauth.load_grant("linear", "")
        assert row is not None
        assert row.sealed[:8] == new.id
        assert "not here" in pegboard.run(**environment).stdout
    finally:
        await storage.close()


@pytest.mark.scenario("secrets: A lost key is said, and breaks nothing else")
async def test_a_shell_without_the_gateways_key_says_so(tmp_path: Path) -> None:
    """What others sealed may be fine: nobody is told that it is lost, and `rotate` names the environment."""
    place = f"sqlite:{tmp_path / 'x.db'}"
    pegboard, storage = Pegboard(tmp_path, place), open_storage(place)
    await storage.open()
    try:
        await fill(storage, await open_sealer(place, {"PEGBOARD_SECRET_KEY": SecretKey.make().text}, state_folder()))
        done = pegboard.run()
        assert "This shell has no key" in done.stdout
        assert "run this with the same environment" in " ".join(done.stderr.split())
        assert "lost" not in done.stdout + done.stderr
        rotated = pegboard.run("rotate")
        assert (rotated.returncode, "a key that this shell does not have" in rotated.stderr) == (1, True), rotated
        assert len(pegboard.data()["withoutKey"]) == 5
    finally:
        await storage.close()


@pytest.mark.scenario("secrets: PostgreSQL needs a key of the environment")
async def test_on_postgres_without_a_key_the_command_says_what_to_set(tmp_path: Path, postgres_url: str) -> None:
    """And shows what is sealed; nothing is written."""
    pegboard = Pegboard(tmp_path, postgres_url)
    done = pegboard.run()
    assert "There is no key" in done.stdout
    assert "set PEGBOARD_SECRET_KEY" in " ".join(done.stdout.split())
    done = pegboard.run("rotate")
    assert (done.returncode, "PEGBOARD_SECRET_KEY" in done.stderr) == (1, True)


@pytest.mark.scenario("secrets: Secrets are sealed and bound to their row")
async def test_rows_that_were_swapped_are_refused(tmp_path: Path, place: str) -> None:
    """Whoever can write into the database can exchange them, and gets nobody's sign-in by it."""
    pegboard, storage, key = Pegboard(tmp_path, place), open_storage(place), SecretKey.make().text
    environment = {"PEGBOARD_SECRET_KEY": key}
    await storage.open()
    try:
        await fill(storage, await open_sealer(place, environment, state_folder()))
        swap = "UPDATE oauth_grants SET server = ? WHERE server = ?"
        for pair in (("tmp", "s0"), ("s0", "s1"), ("s1", "tmp")):
            await storage.database.write(lambda connection, pair=pair: connection.execute(swap, *pair))
        assert sorted(pegboard.data(**environment)["unreadable"]) == ["sign-in to s0", "sign-in to s1"]
        assert pegboard.data(**environment)["withoutKey"] == []
    finally:
        await storage.close()


@pytest.mark.scenario("secrets: Secrets are sealed and bound to their row")
async def test_no_secret_is_in_clear_at_rest(tmp_path: Path, place: str) -> None:
    """Not in the database, its log, a dump, or any file of the folder, while it is open and after; the key is in its
    own file alone. Every file is its user's alone."""
    key = SecretKey.make()
    environment = {} if place.startswith("sqlite:") else {"PEGBOARD_SECRET_KEY": key.text}
    storage = open_storage(place)
    await storage.open()
    secrets = [secret.decode() for secret in ALL]
    try:
        sealer = await open_sealer(place, environment, state_folder())
        await fill(storage, sealer)
        await storage.oauth.use_flow(flow("s").state_hash)
        await storage.oauth.delete_grant("s2", "")
        if place.startswith("sqlite:"):
            assert find_text(tmp_path, *secrets) == []
            assert Path(place.removeprefix("sqlite:") + "-wal").exists()
            assert find_text(tmp_path, sealer.keys[0].text) == [str(tmp_path / "state" / "secret.key")]
        else:
            dumped = dump_rows(place)
            assert "s0" in dumped
            assert not any(secret in dumped or secret.encode().hex() in dumped for secret in [*secrets, key.text])
    finally:
        await storage.close()
    files = [path for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert not any(secret.encode() in path.read_bytes() for path in files for secret in secrets)
    if os.name != "nt":
        assert not any(path.stat().st_mode & 0o077 for path in files)


def dump_rows(url: str) -> str:
    """All rows of all tables of a PostgreSQL database, as text."""
    with psycopg.connect(url) as connection:
        names = [name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
        return str(
            [connection.execute(SQL("SELECT t::text FROM {} t").format(Identifier(name))).fetchall() for name in names]
        )
