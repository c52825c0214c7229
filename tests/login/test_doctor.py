"""`doctor` walks through what a sign-in needs: it names the step that fails, and the rule that it breaks."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from auth.issuer import METADATA, open_issuer
from forking import warm_start
from harness import LIMIT, serving, write_config
from login.person import agree
from login.protected import ProtectedToy, open_protected
from pegboard.sealing.secret_key import SecretKey


def look(tmp_path: Path, url: str) -> tuple[int, list[dict[str, str]]]:
    """The exit code, and what is said of the server."""
    config = write_config(tmp_path / "pegboard.json", {"guarded": {"url": url}})
    words = [*warm_start(), "doctor", "--json", "--config", str(config)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=2 * LIMIT, check=False)
    findings = json.loads(done.stdout)["data"]["findings"]
    return done.returncode, [finding for finding in findings if finding["about"] == "server guarded"]


def test_a_server_that_waits_for_a_sign_in_is_no_error(tmp_path: Path, protected: ProtectedToy) -> None:
    """Where a sign-in would come to its end, the command is the advice."""
    code, (finding,) = look(tmp_path, protected.url)
    assert (code, finding["level"], finding["advice"]) == (0, "warning", "pegboard login guarded")
    assert protected.issuer in finding["said"]


@pytest.mark.scenario("login: Doctor names the step that fails, and its rule")
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"issuer": "http://127.0.0.1:9"}, "RFC 8414, section 3.3"),
        ({"code_challenge_methods_supported": None}, "PKCE with S256"),
        ({"registration_endpoint": None}, "registers no clients by itself"),
        ({"token_endpoint": None}, "names no token endpoint"),
    ],
)
def test_the_step_that_fails_is_named(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    """Metadata of another issuer, no PKCE, no registration, no token endpoint: each is an error that says so."""
    with open_issuer() as issuer:
        document = {
            "issuer": issuer.url,
            "authorization_endpoint": f"{issuer.url}/authorize",
            "token_endpoint": f"{issuer.url}/token",
            "registration_endpoint": f"{issuer.url}/register",
            "code_challenge_methods_supported": ["S256"],
        }
        whole = {key: value for key, value in (document | changes).items() if value is not None}
        issuer.answers[METADATA] = (200, json.dumps(whole).encode(), {"content-type": "application/json"})
        with open_protected(issuer.url) as protected:
            code, findings = look(tmp_path, protected.url)
    assert code == 4
    assert findings[0]["said"].startswith("resource metadata: ")
    assert findings[-1]["level"] == "error"
    assert said in findings[-1]["said"]
    assert findings[-1]["advice"]


def run(config: Path, *words: str, **environment: str) -> dict[str, Any]:
    """What a command answers to programs, with this environment."""
    done = subprocess.run(
        [*warm_start(), *words, "--json", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=2 * LIMIT,
        check=False,
        env={**os.environ, **environment},
    )
    return json.loads(done.stdout)["data"]


def test_a_key_that_is_none_is_named(tmp_path: Path) -> None:
    """By the doctor, of its own environment or of the gateway that runs; servers without a sign-in work on."""
    config = write_config(tmp_path / "pegboard.json", {})
    (alone,) = [each for each in run(config, "doctor", PEGBOARD_SECRET_KEY="password")["findings"] if is_of_key(each)]
    assert (alone["level"], "PEGBOARD_SECRET_KEY cannot be used" in alone["said"]) == ("warning", True)
    assert "password" not in alone["said"]
    with serving(config, PEGBOARD_SECRET_KEY="password"):
        (told,) = [each for each in run(config, "doctor")["findings"] if is_of_key(each)]
    assert "in the environment of the gateway" in told["advice"]
    assert not any(map(is_of_key, run(config, "doctor")["findings"]))


def is_of_key(finding: dict[str, str]) -> bool:
    return finding["about"] == "secrets"


def test_serve_names_a_key_that_is_none(tmp_path: Path) -> None:
    """At its start, not at the first sign-in."""
    config = write_config(tmp_path / "pegboard.json", {})
    words = [*warm_start(), "serve", "--config", str(config), "--port", "0"]
    environment = {**os.environ, "PEGBOARD_SECRET_KEY": "password"}
    with subprocess.Popen(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr is not None
        limit = threading.Timer(LIMIT, process.kill)
        limit.start()
        said = ""
        while "PEGBOARD_SECRET_KEY cannot be used" not in said and (line := process.stderr.readline()):
            said += line
        limit.cancel()
        process.terminate()
    assert "secrets.key.refused" in said
    assert "PEGBOARD_SECRET_KEY cannot be used" in said


def test_a_sign_in_whose_key_is_gone_is_named(tmp_path: Path, protected: ProtectedToy) -> None:
    """`logins` and `doctor` say that the key is not there; with the key, nothing is amiss."""
    config, key = write_config(tmp_path / "pegboard.json", {"guarded": {"url": protected.url}}), SecretKey.make().text
    begun = run(config, "login", "guarded", PEGBOARD_SECRET_KEY=key)
    assert (
        run(config, "login", "guarded", "--callback", agree(begun["url"]), PEGBOARD_SECRET_KEY=key)["state"] == "done"
    )
    (row,) = run(config, "logins")["logins"]
    assert (row["state"], "the key that sealed it is not there" in row["reason"]) == ("unreadable", True)
    said = [each["said"] for each in run(config, "doctor")["findings"] if each["about"] == "server guarded"]
    assert any("the key that sealed it is not there" in each for each in said), said
    (row,) = run(config, "logins", PEGBOARD_SECRET_KEY=key)["logins"]
    assert (row["state"], "reason" in row) == ("live", False)
