"""What `doctor` says of who may come in."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from auth.issuer import Issuer
from forking import warm_start
from harness import LIMIT, serving, toy, write_config
from pegboard.auth.token import digest_of
from pegboard.storage import open_storage

DAY = 86400.0
# Nobody listens there, which is found out at once.
ISSUER = {"issuer": "http://127.0.0.1:9"}


def findings(config: Path) -> dict[str, list[tuple[str, str, str]]]:
    """What it says, by what it is about: level, words, advice."""
    command = [*warm_start(), "doctor", "--json", "--config", str(config)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    found: dict[str, list[tuple[str, str, str]]] = {}
    for row in json.loads(done.stdout)["data"]["findings"]:
        found.setdefault(row["about"], []).append((row["level"], row["said"], row["advice"]))
    return found


async def add_token(place: str, name: str, created: float, expires: float | None, used: float | None = None) -> None:
    """A token as it would be had it been made then."""
    storage = open_storage(place)
    await storage.open()
    token_id = f"{name:x<12}"
    assert await storage.tokens.add(token_id, name, digest_of(name), "{}", created, expires)
    if used is not None:
        await storage.tokens.touch({token_id: used})
    await storage.close()


def test_tokens_that_need_somebody_to_look_are_named(tmp_path: Path) -> None:
    """Expired, soon to expire, never used; a new one and one in use are only counted."""
    place, now = f"sqlite:{tmp_path / 'pegboard.db'}", time.time()
    config = write_config(tmp_path / "pegboard.json", {}, storage=place)
    for name, created, expires, used in (
        ("old", now - 9 * DAY, now - DAY, None),
        ("soon", now, now + 3.5 * DAY, None),
        ("forgotten", now - 30 * DAY, None, None),
        ("new", now, None, None),
        ("busy", now - 30 * DAY, now + 300 * DAY, now),
    ):
        asyncio.run(add_token(place, name, created, expires, used))
    found = findings(config)
    assert found["access"] == [("ok", "4 tokens", "")]
    assert found["token old"][0][:2] == ("warning", "it expired 1 d ago")
    assert found["token soon"] == [("warning", "it expires in 3 days", "pegboard token rotate soon --expires 30d")]
    assert found["token forgotten"] == [
        ("warning", "it was made 30 d ago and never used", "pegboard token remove forgotten")
    ]
    assert not {"token new", "token busy"} & found.keys()


@pytest.mark.parametrize(
    ("rules", "is_said"),
    [
        ([], True),
        ([{"who": ["local"], "admin": True}, {"who": ["token:ci"]}], True),
        ([{"who": ["group:ops"]}], False),
        ([{"who": ["*"]}], False),
    ],
)
def test_an_issuer_that_no_rule_is_for_is_named(tmp_path: Path, rules: list[Any], is_said: bool) -> None:
    """Nobody would get in with its JWTs."""
    config = write_config(tmp_path / "pegboard.json", {}, auth={"issuers": [ISSUER], "rules": rules})
    said = [words for _, words, _ in findings(config).get("access", [])]
    assert any("nobody gets in" in words for words in said) is is_said


def test_an_issuer_is_asked_for_its_keys(tmp_path: Path, issuer: Issuer) -> None:
    """Its metadata and keys can be had, or the reason is said; and so is what is missing for the audience."""
    config = tmp_path / "pegboard.json"
    rules = [{"who": ["*"]}]

    def look(**settings: Any) -> list[tuple[str, str, str]]:
        public = {"publicUrl": settings.pop("publicUrl")} if "publicUrl" in settings else {}
        named = {"issuer": issuer.url, **settings}
        write_config(config, {}, auth={"issuers": [named], "rules": rules, **public})
        return findings(config)[f"issuer {named['issuer']}"]

    ((level, said, _),) = look(audience="here")
    assert (level, said.startswith("its metadata and "), said.endswith("fetched")) == ("ok", True, True)
    assert [level for level, *_ in look(publicUrl="https://gateway.example")] == ["ok"]
    _, (level, said, advice) = look()
    assert (level, "none is set" in said, "auth.publicUrl" in advice) == ("warning", True, True)
    ((level, said, advice),) = look(issuer=f"{issuer.url}/other", audience="here")
    assert (level, "nobody gets in with its tokens" in said, "jwksUrl" in advice) == ("warning", True, True)


def test_rules_that_name_what_there_is_not_are_named(tmp_path: Path) -> None:
    """Those of the config and of tokens, with the nearest name."""
    rules = [{"who": ["local"], "admin": True}, {"who": ["token:laptpo"], "tools": ["one__exho"]}]
    config = write_config(tmp_path / "pegboard.json", {"one": toy()}, auth={"rules": rules})
    for words in (("add", "laptop", "--server", "onee"), ("add", "fine", "--server", "one")):
        command = [*warm_start(), "token", *words, "--config", str(config)]
        assert subprocess.run(command, capture_output=True, timeout=LIMIT, check=False).returncode == 0
    found = findings(config)
    assert [words for level, words, _ in found["auth.rules[1]"] if level == "warning"] == [
        'who: there is no token "laptpo"; did you mean laptop?',
        'tools.allow: there is no tool "one__exho"; did you mean one__echo?',
    ]
    ((level, said, advice),) = found["token laptop"]
    assert (level, said) == ("warning", 'servers: there is no server "onee"; did you mean one?')
    assert "pegboard token change laptop --server NAME" in advice
    assert not {"auth.rules[0]", "token fine"} & found.keys()


def test_an_open_gateway_is_named(tmp_path: Path) -> None:
    """One that lets in everybody from other machines; and one that lets in nobody any more."""
    config = write_config(tmp_path / "pegboard.json", {})
    with serving(config, options=("--host", "0.0.0.0", "--insecure")):
        ((level, said, advice),) = findings(config)["access"]
        assert level == "warning"
        assert "everybody is let in without a token" in said
        assert "pegboard token add NAME" in advice
    command = [*warm_start(), "token", "add", "laptop", "--config", str(config)]
    assert subprocess.run(command, capture_output=True, timeout=LIMIT, check=False).returncode == 0
    with serving(config, options=("--host", "0.0.0.0")):
        assert findings(config)["access"] == [("ok", "1 token", "")]
        remove = [*warm_start(), "token", "remove", "laptop", "--config", str(config)]
        assert subprocess.run(remove, capture_output=True, timeout=LIMIT, check=False).returncode == 0
        ((level, said, _),) = findings(config)["access"]
        assert level == "warning"
        assert "nobody there can come in" in said
