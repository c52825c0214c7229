"""Which secrets an entry has as plain text, and how it is shown without them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pegboard.config.entry_effects import display_command
from pegboard.config.literal_secrets import has_secret, literal_secrets, mask_entry

SECRET = "tulip-tulip-tulip"


@pytest.mark.parametrize(
    ("entry", "places"),
    [
        ({"env": {"API_KEY": SECRET, "TZ": "UTC"}}, ["env API_KEY"]),
        ({"env": {"API_KEY": "x"}}, ["env API_KEY"]),
        ({"env": {"API_KEY": "${API_KEY}", "OTHER_TOKEN": "${A}${B:-}", "EMPTY_TOKEN": ""}}, []),
        ({"env": {"API_KEY": f"${{PREFIX}}{SECRET}"}}, ["env API_KEY"]),
        ({"env": {"DB": f"postgres://u:{SECRET}@h.example/d"}}, ["env DB"]),
        ({"headers": {"Authorization": f"Bearer {SECRET}"}}, ["header Authorization"]),
        ({"headers": {"Authorization": "Bearer ${T}", "Accept": "text/plain"}}, []),
        ({"env": {"API_KEY": f"${{NOSUCH:-{SECRET}}}"}}, ["env API_KEY"]),
        ({"headers": {"Authorization": f"Bearer ${{NOSUCH:-{SECRET}}}"}}, ["header Authorization"]),
        ({"command": "x", "args": ["--token", f"${{T:-{SECRET}}}"]}, ["args"]),
        ({"headers": {"X-Anything": "v"}}, ["header X-Anything"]),
        ({"command": "x", "args": ["--api-key", SECRET]}, ["args"]),
        ({"command": "x", "args": [f"--api-key={SECRET}"]}, ["args"]),
        ({"command": "x", "args": ["--api-key=${K}", "--token", "${T}", "-y", "pkg"]}, []),
        ({"url": f"https://d.example/mcp?key={SECRET}"}, ["url"]),
        ({"url": f"https://u:{SECRET}@d.example/"}, ["url"]),
        ({"url": "https://d.example/mcp?key=${K}"}, []),
        ({"url": "https://d.example/mcp"}, []),
        ({"env": None, "headers": 5, "args": "x", "url": []}, []),
    ],
)
def test_each_place_of_a_plain_secret_is_named(entry: dict[str, Any], places: list[str]) -> None:
    """A variable is none; a value beside one is, and so is what stands for it where it has no value."""
    assert literal_secrets(entry) == places
    assert has_secret(entry) is bool(places)
    assert SECRET not in json.dumps(mask_entry(entry)) + display_command(entry)
    if not places:
        assert mask_entry(entry) == entry


def test_a_secret_is_one_under_the_keys_of_others() -> None:
    """They mean the same."""
    assert literal_secrets({"cmd": "x", "environment": {"API_KEY": SECRET}}) == ["env API_KEY"]
    assert literal_secrets({"serverUrl": f"https://d.example/mcp?key={SECRET}"}) == ["url"]
