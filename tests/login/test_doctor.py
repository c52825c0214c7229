"""`doctor` walks through what a sign-in needs: it names the step that fails, and the rule that it breaks."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from auth.issuer import METADATA, open_issuer
from forking import warm_start
from harness import LIMIT, write_config
from login.protected import ProtectedToy, open_protected


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
