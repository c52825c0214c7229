"""What is hidden of an entry before a yes: secrets, and never what runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pegboard.config.masking import mask_header, mask_url, mask_variable, mask_words

HIDDEN = "[redacted]"
RANDOM = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["server", "--token", "tulip-42"], ["--token", HIDDEN]),
        (["server", "--api-key=tulip-42"], [f"--api-key={HIDDEN}"]),
        (["server", "--secret", RANDOM], ["--secret", HIDDEN]),
        (["npx", "-y", "pkg@1", "--token", "tulip-42"], ["-y", "pkg@1", "--token", HIDDEN]),
        (["/usr/bin/npx.cmd", "pkg", "--token", "tulip-42"], ["pkg", "--token", HIDDEN]),
        (["uvx", "--from", "a", "b", "--token", "tulip-42"], ["--from", "a", "b", "--token", HIDDEN]),
        (["python3.12", "-m", "mod", "--token", "tulip-42"], ["-m", "mod", "--token", HIDDEN]),
        (
            ["docker", "run", "-i", "--rm", "-e", "API_KEY=tulip-42", "image", "--token", "tulip-42"],
            ["run", "-i", "--rm", "-e", f"API_KEY={HIDDEN}", "image", "--token", HIDDEN],
        ),
        (
            ["npx", "pkg", "--header", "Authorization: Bearer tulip-42"],
            ["pkg", "--header", f"Authorization: Bearer {HIDDEN}"],
        ),
        (["server", "postgresql://ada:tulip-42@db.example/shop"], [f"postgresql://{HIDDEN}@db.example/shop"]),
        (["server", "https://d.example/mcp?api_key=tulip-42&q=1"], [f"https://d.example/mcp?api_key={HIDDEN}&q=1"]),
    ],
)
def test_a_secret_of_a_command_is_hidden(command: list[str], shown: list[str]) -> None:
    """The value of an option or of a variable, in a header, and in an address; not the words around it."""
    assert mask_words(command[0], command[1:]) == shown


@pytest.mark.parametrize(
    "command",
    [
        ["sh", "-c", "TOKEN=$(touch$IFS/tmp/x) exec cat"],
        ["sh", "-c", "password:curl|sh"],
        ["bash", "-lc", "TOKEN=tulip"],
        ["node", "-e", "KEY=tulip"],
        ["npx", "-y", "--token", "package"],
        ["npx", "--foo", "bar", "--token", "package"],
        ["npx", "--header", "github:somebody/package"],
        ["uvx", "--api-key", "package"],
        ["docker", "run", "--password", "image"],
        ["deno", "run", "--token", "file.ts"],
        ["cmd", "/c", "npx", "-y", "--token", "package"],
        ["env", "--auth", "program"],
        ["sudo", "--pass", "program"],
        ["server", "--token", "./program"],
        ["server", "--token", "a;b"],
        ["server", "--token=$(x)"],
        ["server", "--token", "two words"],
        ["server", "--askpass", "program"],
        ["git", "-c", "credential.helper=program"],
        ["server", "--token", "${TOKEN}", "--key=${KEY}"],
        ["server", "http://x.example/$(id)@host"],
        ["npx", "https://somebody.example/a1b2c3d4e5f6a7b8c9d0e1f2/x.tgz"],
    ],
)
def test_what_may_run_is_never_hidden(command: list[str]) -> None:
    """Scripts, what a runner may take for the package, paths, and whatever a shell would take apart."""
    assert mask_words(command[0], command[1:]) == command[1:]


def test_a_program_that_is_here_is_never_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that is no program is a secret; one that is may be run."""
    assert mask_words("server", ["--token", "tulip"]) == ["--token", HIDDEN]
    (tmp_path / "tulip").write_text("#!/bin/sh\n")
    (tmp_path / "tulip").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert mask_words("server", ["--token", "tulip"]) == ["--token", "tulip"]
    assert mask_variable("MY_TOKEN", "tulip") == "tulip"


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("API_KEY", "tulip-42", HIDDEN),
        ("AWS_SECRET_ACCESS_KEY", RANDOM, HIDDEN),
        ("API_KEY", "${PREFIX}tulip", f"${{PREFIX}}{HIDDEN}"),
        ("API_KEY", "${KEY}", "${KEY}"),
        ("API_KEY", "${KEY:-tulip}", f"${{KEY:-{HIDDEN}}}"),
        ("API_KEY", "touch /tmp/x", "touch /tmp/x"),
        ("API_KEY", "/tmp/x", "/tmp/x"),
        ("SSH_ASKPASS", "tulip", "tulip"),
        ("PATH", "/tmp/evil:/bin", "/tmp/evil:/bin"),
        ("DB", "postgres://u:tulip@h/d", f"postgres://{HIDDEN}@h/d"),
    ],
)
def test_of_a_variable_only_a_secret_is_hidden(name: str, value: str, shown: str) -> None:
    """Its name says that it is one, and its value cannot be a command."""
    assert mask_variable(name, value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("Bearer tulip", HIDDEN),
        ("Bearer ${T}", "Bearer ${T}"),
        ("Bearer ${T:-tulip}", f"Bearer ${{T:-{HIDDEN}}}"),
        ("a ${AWS_SECRET_ACCESS_KEY}", f"{HIDDEN}${{AWS_SECRET_ACCESS_KEY}}"),
    ],
)
def test_in_a_header_the_variables_are_shown(value: str, shown: str) -> None:
    """They are what is sent away."""
    assert mask_header("Token", value) == shown
    assert mask_header("Accept", "text/plain") == "text/plain"


def test_in_an_address_the_host_and_the_variables_are_shown() -> None:
    """Users, values and keys are not."""
    assert mask_url("https://u:tulip@d.example/mcp?a=tulip") == f"https://{HIDDEN}@d.example/mcp?a={HIDDEN}"
    assert mask_url("https://d.example/${A}?k=${B}") == "https://d.example/${A}?k=${B}"
    assert mask_url("https://d.example/?k=${B:-tulip}") == f"https://d.example/?k=${{B:-{HIDDEN}}}"
