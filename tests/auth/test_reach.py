"""`serve` on an address that other machines reach starts only if it can tell who comes."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from forking import warm_start
from harness import LIMIT, write_config
from pegboard.access.settings import AuthSettings, IssuerSettings, Required
from pegboard.auth.authenticator import Authenticator
from pegboard.auth.reach import Reach, UnprotectedError
from pegboard.config import read_settings

ISSUER = IssuerSettings(issuer="https://issuer.example")


def pegboard(*words: str) -> subprocess.CompletedProcess[str]:
    """A command as its own process."""
    return subprocess.run([*warm_start(), *words], capture_output=True, text=True, timeout=LIMIT, check=False)


@contextlib.contextmanager
def beyond_loopback(config: Path, *words: str) -> Generator[tuple[str, list[str], Path]]:
    """A gateway that listens everywhere: its address, the rest of its banner, and its stderr so far."""
    errors = config.parent / "stderr"
    command = [*warm_start(), "serve", "--config", str(config), "--host", "0.0.0.0", "--port", "0", *words]
    with errors.open("w") as log, subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process:
        assert process.stdout is not None
        try:
            first = process.stdout.readline()
            assert "listens on" in first, errors.read_text()
            url = next(word for word in first.split() if word.startswith("http")).removesuffix("/mcp")
            banner = list(iter(process.stdout.readline, "By its address:\n"))
            yield url, banner, errors
        finally:
            process.terminate()
            process.wait(LIMIT)


def statuses(url: str, token: str | None = None) -> tuple[int, int]:
    """Of a request of this machine's user, and of one that a proxy passes on from another machine."""
    own = {"Authorization": f"Bearer {token}"} if token else {}
    headers: Sequence[dict[str, str]] = (own, {**own, "X-Forwarded-For": "8.8.8.8"})
    here, elsewhere = (httpx2.get(f"{url}/api/tools", headers=each).status_code for each in headers)
    return here, elsewhere


def test_without_a_way_to_tell_who_comes_it_does_not_start(tmp_path: Path) -> None:
    """It says what to do, and exits with 1; nothing is listened on any more."""
    config = write_config(tmp_path / "pegboard.json", {})
    done = pegboard("serve", "--config", str(config), "--host", "0.0.0.0", "--port", "0")
    assert (done.returncode, done.stdout) == (1, "")
    for words in ("there is no way to tell who comes", "pegboard token add NAME", "--insecure"):
        assert words in done.stderr


def test_with_tokens_that_have_expired_it_does_not_start(tmp_path: Path) -> None:
    """They let nobody in."""
    config = write_config(tmp_path / "pegboard.json", {})
    assert pegboard("token", "add", "short", "--expires", "1s", "--config", str(config)).returncode == 0
    while "expired" not in pegboard("token", "list", "--config", str(config)).stdout:
        pass
    assert pegboard("serve", "--config", str(config), "--host", "0.0.0.0", "--port", "0").returncode == 1


def test_a_config_that_wants_no_credentials_is_a_config_that_does_not_start(tmp_path: Path) -> None:
    """With exit code 3, also where there are tokens: nobody would need one."""
    config = write_config(tmp_path / "pegboard.json", {}, auth={"required": False})
    assert pegboard("token", "add", "ci", "--config", str(config)).returncode == 0
    done = pegboard("serve", "--config", str(config), "--host", "0.0.0.0", "--port", "0")
    assert done.returncode == 3
    assert "auth.required is false" in done.stderr


def test_with_a_token_it_starts_and_others_need_one(tmp_path: Path) -> None:
    """This machine's user needs none; the banner says who may come in."""
    config = write_config(tmp_path / "pegboard.json", {})
    token = pegboard("token", "add", "laptop", "--config", str(config)).stdout.strip()
    with beyond_loopback(config) as (url, banner, errors):
        assert statuses(url) == (200, 401)
        assert statuses(url, token) == (200, 200)
        assert "Who may come in: you, on this machine; whoever has a token (1 token so far).\n" in banner
        said = errors.read_text()
        port = url.rpartition(":")[2]
        (address,) = re.findall(r"^Other machines reach it at:\n  (http://\S+)$", said, re.MULTILINE)
        assert address.endswith(f":{port}/mcp")
        assert "0.0.0.0" not in said
        assert f'pegboard {address} --header "Authorization: Bearer TOKEN"' in said
        # It is an address at which the gateway answers, and lets in whoever has a token.
        tools = address.replace("/mcp", "/api/tools")
        assert httpx2.get(tools, headers={"Authorization": f"Bearer {token}"}).status_code == 200
        shown = pegboard("status", "--config", str(config)).stdout
        assert "  access:   this machine's user; 1 token\n" in shown
        assert f"  reached:  from other machines, at {address}\n" in shown
        (row,) = json.loads(pegboard("status", "--json", "--config", str(config)).stdout)["data"]["gateways"]
        assert row["access"] == {"local": True, "anonymous": False, "tokens": 1, "issuers": 0}
        assert f"{row['addresses'][0]}/mcp" == address
        assert "WARNING" not in errors.read_text()


def test_insecure_lets_in_whoever_comes_and_says_so(tmp_path: Path) -> None:
    """Loudly."""
    config = write_config(tmp_path / "pegboard.json", {})
    with beyond_loopback(config, "--insecure") as (url, banner, errors):
        assert statuses(url) == (200, 200)
        assert "Who may come in: everybody who reaches this address, without a token.\n" in banner
        assert "WARNING: --insecure lets in whoever reaches this address." in errors.read_text()
        assert "Bearer TOKEN" not in errors.read_text()
        assert "  access:   everybody, without a token\n" in pegboard("status", "--config", str(config)).stdout


def test_insecure_and_required_contradict(tmp_path: Path) -> None:
    """One of them is a mistake: exit code 2."""
    config = write_config(tmp_path / "pegboard.json", {}, auth={"required": True})
    done = pegboard("serve", "--config", str(config), "--port", "0", "--insecure")
    assert done.returncode == 2
    assert "--insecure contradicts auth.required" in done.stderr


def test_on_this_machine_alone_it_starts_without_anything(tmp_path: Path) -> None:
    """As ever; the banner says that others would need a token."""
    config = write_config(tmp_path / "pegboard.json", {})
    command = [*warm_start(), "serve", "--config", str(config), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            banner = list(iter(process.stdout.readline, "By its address:\n"))
        finally:
            process.terminate()
            process.wait(LIMIT)
    assert "Who may come in: you, on this machine; whoever has a token (no tokens so far).\n" in banner


@pytest.mark.scenario("access: Beyond this machine it starts only if it can tell who comes")
@pytest.mark.parametrize(
    ("reach", "auth", "tokens", "starts"),
    [
        (Reach(), AuthSettings(), 0, True),
        (Reach(), AuthSettings(required=False), 0, True),
        (Reach(beyond_loopback=True), AuthSettings(), 0, False),
        (Reach(beyond_loopback=True), AuthSettings(), 1, True),
        (Reach(beyond_loopback=True), AuthSettings(issuers=(ISSUER,)), 0, True),
        (Reach(beyond_loopback=True), AuthSettings(required=True), 0, False),
        (Reach(beyond_loopback=True), AuthSettings(required=False, issuers=(ISSUER,)), 1, False),
        (Reach(beyond_loopback=True, insecure=True), AuthSettings(), 0, True),
        (Reach(beyond_loopback=True, insecure=True), AuthSettings(required=False), 0, True),
    ],
)
def test_what_starts_where(reach: Reach, auth: AuthSettings, tokens: int, starts: bool) -> None:
    """An address of this machine always; others with a token, an issuer, or by will."""
    with contextlib.nullcontext() if starts else pytest.raises(UnprotectedError):
        reach.check(auth, tokens)


@pytest.mark.scenario("access: Beyond this machine it starts only if it can tell who comes")
@pytest.mark.parametrize(
    ("reach", "configured", "in_force"),
    [
        (Reach(), "remote", "remote"),
        (Reach(), False, False),
        (Reach(beyond_loopback=True), "remote", "remote"),
        (Reach(beyond_loopback=True), True, True),
        (Reach(beyond_loopback=True), False, "remote"),
        (Reach(beyond_loopback=True, insecure=True), "remote", False),
        (Reach(beyond_loopback=True, insecure=True), True, True),
    ],
)
def test_a_config_that_changes_does_not_open_a_gateway_to_others(
    reach: Reach, configured: Required, in_force: Required
) -> None:
    """Only whoever starts it does, and whoever wants a token of everybody gets that."""
    assert reach.requirement(AuthSettings(required=configured)) == in_force


def test_that_a_config_does_not_open_it_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Once, when it is read."""
    config = write_config(tmp_path / "pegboard.json", {}, auth={"required": False})
    settings: Any = read_settings(config, os.environ)
    with caplog.at_level("WARNING", logger="pegboard"):
        authenticator = Authenticator(lambda: settings, reach=Reach(beyond_loopback=True))
        for _ in range(2):
            assert authenticator.local.is_local
    assert sum("which does not open a gateway" in record.getMessage() for record in caplog.records) == 1
