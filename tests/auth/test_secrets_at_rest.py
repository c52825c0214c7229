"""No token is anywhere once it was shown: not in the database or its log, in no file, no log line, no process list."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import httpx2
import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from auth.asking import ACCEPT, modern_request
from auth.issuer import Issuer
from forking import COLD_START, warm_start
from harness import LIMIT, toy, write_config

CALL = {"arguments": {"text": "hello"}}


def find_text(folder: Path, *texts: str) -> list[str]:
    """The files below a folder that have one of these texts in them, in bytes."""
    wanted = [text.encode() for text in texts]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    return [str(path) for path in files if any(text in path.read_bytes() for text in wanted)]


def process_lists() -> str:
    """The command lines and environments of all processes that can be read."""
    found: list[bytes] = []
    for folder in Path("/proc").glob("[0-9]*"):
        for name in ("cmdline", "environ"):
            try:
                found.append((folder / name).read_bytes())
            except OSError:
                continue
    return b"\n".join(found).decode("latin-1")


def dump(url: str) -> str:
    """All rows of all tables of a PostgreSQL database."""
    with psycopg.connect(url) as connection:
        names = [name for (name,) in connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]
        query = SQL("SELECT t::text, t.* FROM {} t")
        query = SQL("SELECT t::text, t.* FROM {} t")
        found = {name: connection.execute(query.format(Identifier(name))).fetchall() for name in names}
    assert {"tokens", "audit", "memories"} <= {name for name, rows in found.items() if rows}
    return str(found)


def send_everything(url: str, token: str) -> str:
    """All that is answered to a bearer: both eras, REST, what it may not, and itself where it must not stand."""
    found, own = "", {"Authorization": f"Bearer {token}"}
    call, modern = modern_request("tools/call", name="one__environment", arguments={})
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}
    requests: list[tuple[str, str, Any, dict[str, str]]] = [
        ("POST", "/mcp", {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}, ACCEPT),
        ("POST", "/mcp", call, modern),
        ("GET", "/api/tools", None, {}),
        ("POST", "/api/tools/one__echo/call", CALL, {}),
        ("POST", "/api/memories", {"key": "kept", "text": "x"}, {}),
        ("GET", "/api/tokens", None, {}),
        ("GET", "/api/calls", None, {}),
        ("GET", "/metrics", None, {}),
        ("GET", f"/api/tools?token={token}", None, {}),
        ("POST", f"/mcp/{token}", call, modern),
    ]
    for method, path, body, more in requests:
        answer = httpx2.request(method, url + path, json=body, headers={**own, **more}, timeout=LIMIT)
        # A page that is not there is named to whoever asks for it.
        found += answer.text.replace(path, "") + str(answer.headers)
    return found


@pytest.mark.scenario("access: No token is kept or shown")
def test_no_token_is_kept_or_shown_anywhere(tmp_path: Path, place: str, issuer: Issuer) -> None:
    """After a full run: made, used in both eras and over REST, misspelt, rotated, removed, and a JWT; with debug logs,
    while the gateway runs, so that the write-ahead log of the database is there. All files are their user's alone."""
    auth = {"required": True, "issuers": [{"issuer": issuer.url, "audience": "us"}], "rules": [{"who": ["*"]}]}
    own: dict[str, Any] = {"storage": place, "auth": auth, "toolsets": ["discovery", "memory"]}
    config = write_config(tmp_path / "pegboard.json", {"one": toy()}, **own, audit={"file": "state/audit.jsonl"})
    log = tmp_path / "gateway.log"
    env = {**os.environ, "PEGBOARD_LOG": "debug"}

    def pegboard(*words: str) -> str:
        command = [*warm_start(), *words, "--config", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True, env=env)
        with (tmp_path / "commands.log").open("a") as errors:
            errors.write(done.stderr)
        return done.stdout.strip()

    # Nothing but the gateway itself keeps others from reading what it writes.
    command = [*COLD_START, "serve", "--config", str(config), "--port", "0"]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env, umask=0)
    try:
        assert process.stdout is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http")).removesuffix("/mcp")
        kept, gone = pegboard("token", "add", "kept"), pegboard("token", "add", "gone")
        old, kept = kept, pegboard("token", "rotate", "kept")
        wrong, jwt = kept[:-3] + "AAA", issuer.sign(aud="us")
        replies = "".join(send_everything(url, token) for token in (kept, gone, old, wrong, jwt))
        pegboard("token", "remove", "gone")
        listed = pegboard("token", "list") + pegboard("token", "list", "--json") + pegboard("audit", "--json")
        deadline = time.monotonic() + LIMIT
        while '"lastUsedAt": null' in pegboard("token", "list", "--json"):
            assert time.monotonic() < deadline
        secrets = [token.rpartition(f"pgb_{token[4:16]}_")[2] for token in (kept, gone, old, wrong)]
        assert all(len(secret) == 43 for secret in secrets)
        secrets += jwt.split(".")[1:]
        if place.startswith("sqlite:"):
            assert Path(place.removeprefix("sqlite:") + "-wal").exists()
        else:
            dumped = dump(place)
            assert not any(secret in dumped for secret in secrets)
        assert find_text(tmp_path, *secrets) == []
        shown = replies + listed
        assert all(word in shown for word in ("PATH", "one__echo", "pegboard_server_state"))
        assert not any(secret in shown for secret in secrets)
        lists = process_lists()
        assert str(config) in lists
        (run,) = (tmp_path / "state" / "run").glob("*.json")
        own_secret = json.loads(run.read_text())["token"]
        assert not any(secret in lists + shown for secret in (*secrets, own_secret))
        assert find_text(tmp_path, own_secret) == [str(run)]
        modes = {path: path.stat().st_mode & 0o077 for path in (tmp_path / "state").rglob("*") if path.is_file()}
        assert {path.suffix for path in modes} >= {".json", ".jsonl"}
        assert not any(modes.values()), modes
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT)
    assert "token.added" in log.read_text()
    assert find_text(tmp_path, *secrets, "pgb_") == []


@pytest.mark.skipif(os.name == "nt", reason="modes of files are POSIX")
def test_the_database_is_its_users_alone(tmp_path: Path) -> None:
    """Nobody else of the machine reads even the digests."""
    config = write_config(tmp_path / "pegboard.json", {})
    command = [*warm_start(), "token", "add", "ci", "--config", str(config)]
    assert subprocess.run(command, capture_output=True, timeout=LIMIT, check=False).returncode == 0
    assert (tmp_path / "state" / "pegboard.db").stat().st_mode & 0o077 == 0
