"""What a server's process inherits."""

from __future__ import annotations

from pathlib import Path

from pegboard.servers.environment import INHERITED, base_environment

SECRETS = [
    "NODE_AUTH_TOKEN",
    "NPM_CONFIG__AUTHTOKEN",
    "npm_config_//registry.npmjs.org/:_authToken",
    "UV_PUBLISH_TOKEN",
    "UV_INDEX_PRIVATE_PASSWORD",
    "MISE_GITHUB_TOKEN",
    "ASDF_GITHUB_API_TOKEN",
    "PIP_EXTRA_INDEX_URL",
    "AWS_SECRET_ACCESS_KEY",
    "GITHUB_TOKEN",
    "SSH_AUTH_SOCK",
]


def test_a_process_inherits_what_it_needs_to_run_and_no_token() -> None:
    """By name: a prefix would let tokens of package managers through."""
    needed = {
        "PATH": "/bin",
        "HOME": "/me",
        "npm_config_cache": "/c",
        "UV_CACHE_DIR": "/u",
        "https_proxy": "http://p:1",
    }
    assert base_environment({**needed, **dict.fromkeys(SECRETS, "secret")}) == needed


def test_an_address_with_credentials_is_not_inherited() -> None:
    """Neither of a proxy nor of a package index; an @ elsewhere does not matter."""
    given = {
        "HTTPS_PROXY": "http://me:secret@proxy:3128",
        "PIP_INDEX_URL": "https://token@pypi.example/simple",
        "NPM_CONFIG_REGISTRY": "https://npm.example/@scope",
        "HTTP_PROXY": "me:secret@proxy:8080",
        "UV_INDEX_URL": "https://pypi.example/simple?token=secret",
        "npm_config_registry": "//npm.example/:_authToken=secret",
    }
    assert base_environment(given) == {"NPM_CONFIG_REGISTRY": "https://npm.example/@scope"}


def test_every_inherited_variable_is_documented() -> None:
    """And no other is."""
    text = (Path(__file__).parents[2] / "docs" / "config.md").read_text("utf-8")
    section = text.partition("## What a process inherits\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ") and "`" in line]
    assert {name for row in rows for name in row.split("`")[1::2]} == INHERITED
