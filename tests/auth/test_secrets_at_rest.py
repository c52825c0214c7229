"""No token is anywhere once it was shown: not in the database or its log, in no file, no log line, no process list."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import httpx2
import psycopg
import pytest

from forking import warm_start
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


def test_no_token_is_kept_or_shown_anywhere(tmp_path: Path, place: str) -> None:
    """After a full run: made, used on both eras' way and over REST, misspelt, rotated, removed; with debug logs, while
    the gateway runs, so that the write-ahead log of the database is there."""
    config = write_config(tmp_path / "pegboard.json", {"one": toy()}, storage=place, auth={"required": True})
    log = tmp_path / "gateway.log"
    env = {**os.environ, "PEGBOARD_LOG": "debug"}

    def pegboard(*words: str) -> str:
        command = [*warm_start(), *words, "--config", str(config)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=True, env=env)
        with (tmp_path / "commands.log").open("a") as errors:
            errors.write(done.stderr)
        return done.stdout.strip()

    command = [*warm_start(), "serve", "--config", str(config), "--port", "0"]
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=env)
    try:
        assert process.stdout is not None
        url = next(word for word in process.stdout.readline().split() if word.startswith("http")).removesuffix("/mcp")
        kept, gone = pegboard("token", "add", "kept"), pegboard("token", "add", "gone")
        old, kept = kept, pegboard("token", "rotate", "kept")
        wrong = kept[:-3] + "AAA"
        replies = ""
        for token in (kept, gone, old, wrong):
            own = {"Authorization": f"Bearer {token}"}
            for method, path, body in (
                ("GET", "/api/tools", None),
                ("POST", "/api/tools/one__echo/call", CALL),
                ("GET", "/api/tokens", None),
                ("GET", "/metrics", None),
                ("GET", f"/api/tools?token={token}", None),
            ):
                answer = httpx2.request(method, url + path, json=body, headers=own, timeout=LIMIT)
                replies += answer.text + str(answer.headers)
        pegboard("token", "remove", "gone")
        listed = pegboard("token", "list") + pegboard("token", "list", "--json")
        deadline = time.monotonic() + LIMIT
        while '"lastUsedAt": null' in pegboard("token", "list", "--json"):
            assert time.monotonic() < deadline
        secrets = [token.rpartition(f"pgb_{token[4:16]}_")[2] for token in (kept, gone, old, wrong)]
        assert all(len(secret) == 43 for secret in secrets)
        if place.startswith("sqlite:"):
            assert Path(place.removeprefix("sqlite:") + "-wal").exists()
        else:
            with psycopg.connect(place) as connection:
                rows = connection.execute("SELECT row_to_json(t)::text, t.digest FROM tokens t").fetchall()
            assert rows
            assert not any(secret in str(rows) for secret in secrets)
        assert find_text(tmp_path, *secrets) == []
        assert "pgb_" not in replies + listed
        lists = process_lists()
        assert str(config) in lists
        assert not any(secret in lists for secret in secrets)
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
