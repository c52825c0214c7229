"""A grant in words: how many tools and which servers somebody is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.cli.show import count_tools

_NAMED = 5


def count_grant(grant: Mapping[str, Any]) -> str:
    """How many tools it gives, and of how many."""
    tools = grant["tools"]
    said = f"{tools} of {count_tools(grant['of'])}" if "of" in grant else count_tools(tools)
    here = grant.get("onlyHere")
    said += f" ({here} of them only on this machine)" if here else ""
    unasked = len(grant.get("notAsked", ()))
    return said + (f", and those of {unasked} server{'' if unasked == 1 else 's'} not asked yet" if unasked else "")


def gives_nothing(grant: Mapping[str, Any]) -> bool:
    """Whether there are no tools but those that find others."""
    return grant["tools"] <= grant.get("finding", 0)


def explain_nothing(token: Mapping[str, Any], grant: Mapping[str, Any]) -> str:
    """Why a token is given no tools now, and what to do; empty where there are none to be given."""
    unasked: list[str] = grant.get("notAsked") or []
    if unasked:
        whose = f"{', '.join(unasked[:_NAMED])}{' and others' if len(unasked) > _NAMED else ''}"
        return f"{whose} {'has' if len(unasked) == 1 else 'have'} not been asked yet. Ask now: pegboard refresh"
    if grant["of"] <= grant.get("finding", 0):
        return ""
    configured: Mapping[str, Any] = token.get("configRule") or {}
    rules: list[Mapping[str, Any] | None] = [token.get("rule"), configured.get("rule")]
    if not grant["servers"] and any(rule and rule.get("servers") for rule in rules):
        return "no server of the config fits its rule. pegboard servers lists those that there are"
    if any(rule and rule.get("readOnly") for rule in rules):
        return (
            "it is read-only, and no tool that it could use says that it only reads (readOnlyHint). "
            'If you know some that do, name them in the server\'s entry: "tools": {"readOnly": ["get_*"]}'
        )
    return f"its rule fits none of the {count_tools(grant['of'])} that there are. pegboard tools lists them"


def name_servers(grant: Mapping[str, Any]) -> str:
    """Which servers it gives, as the end of a sentence."""
    names: list[str] = grant["servers"]
    if not names:
        return "; no servers"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"; server{'' if len(names) == 1 else 's'} {', '.join(names[:_NAMED])}{more}"
