"""Whole turns of real agents with a scripted model: find a tool, load it, see it in a later prompt, call it, answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from real_clients.model import ScriptedModel, Step, scripted_model
from real_clients.programs import Home

TOOL = "time__get_current_time"
# After a load, the model looks around until its client has read the list again, which clients do in the background.
LOOKS = 6
STEPS = [
    Step("tool_find", lambda _: {"query": "current time in a timezone"}),
    Step("tool_load", lambda _: {"names": [TOOL]}),
    *[Step("tool_active")] * LOOKS,
    Step(TOOL, lambda _: {"timezone": "UTC"}),
]


def claude_code(home: Home, model: ScriptedModel) -> str:
    """A turn of Claude Code, without a person."""
    options = ("--allowedTools", "mcp__pegboard", "--output-format", "json")
    provider = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "x", "ENABLE_TOOL_SEARCH": "false"}
    said = home.run("claude", "-p", "What time is it?", *options, **provider)
    return str(json.loads(said[said.index("{") :])["result"])


def opencode(home: Home, model: ScriptedModel) -> str:
    """A turn of OpenCode."""
    file = home.path / ".config/opencode/opencode.json"
    settings = json.loads(file.read_text())
    settings["provider"] = {"anthropic": {"options": {"baseURL": model.url, "apiKey": "x"}}}
    file.write_text(json.dumps(settings))
    return home.run("opencode", "run", "-m", "anthropic/claude-sonnet-4-5", "What time is it?")


def copilot(home: Home, model: ScriptedModel) -> str:
    """A turn of Copilot CLI."""
    provider = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": model.url,
        "COPILOT_PROVIDER_TYPE": "anthropic",
        "COPILOT_PROVIDER_API_KEY": "x",
        "COPILOT_MODEL": "claude-sonnet-4",
    }
    return home.run("copilot", "-p", "What time is it?", "--allow-all-tools", **provider)


@pytest.mark.parametrize(
    ("client", "turn"),
    [("claude-code", claude_code), ("opencode", opencode), ("copilot", copilot)],
    ids=["claude-code", "opencode", "copilot"],
)
@pytest.mark.parametrize("way", ["--http", "--stdio"])
def test_a_loaded_tool_is_in_a_later_prompt_and_is_called(
    home: Home, config: Path, gateway: str, client: str, turn: Callable[[Home, ScriptedModel], str], way: str
) -> None:
    """As `pegboard install` connected the client."""
    del gateway
    home.pegboard("install", client, way, "--yes", "--config", str(config))
    with scripted_model(STEPS) as model:
        answer = turn(home, model)
    assert not model.problems
    assert TOOL in model.results[0]
    assert not any(name.endswith(TOOL) for name in model.prompts[0])
    assert any(name.endswith(TOOL) for name in model.prompts[-1])
    assert "The answer is" in answer
    assert "timezone" in answer
