"""Real-looking tools, as many as wanted, the same on every run; and queries for them."""

from __future__ import annotations

import random
from typing import Any

_ACTIONS = (
    "create get list update delete search find send fetch export import archive restore merge approve reject"
    " assign schedule cancel publish copy move rename validate analyze summarize convert upload download sync"
    " share lock unlock start stop restart retry monitor compare estimate calculate generate render translate"
    " notify subscribe"
).split()
_THINGS = (
    "invoice customer order payment refund product issue branch commit pipeline deployment container cluster"
    " secret certificate dashboard alert metric log trace incident ticket message channel thread meeting calendar"
    " event contact lead campaign form survey document page folder file table row column query index backup"
    " snapshot volume network firewall domain record user role permission token session device sensor route"
    " vehicle shipment warehouse supplier contract policy claim patient appointment prescription course lesson"
    " student grade song playlist video image caption translation forecast station flight hotel booking recipe"
    " ingredient exercise match player season article comment"
).split()
_QUALIFIERS = (
    "active archived pending overdue recent shared private public draft scheduled failed duplicate nested remote"
    " local encrypted compressed weekly monthly annual regional internal external temporary default primary"
    " secondary"
).split()
_PARAMETERS = (
    "id name limit offset cursor filter query start_date end_date status owner format path url language timezone"
    " currency amount priority tags dry_run include_deleted sort_by page_size region"
).split()


def tools(count: int, seed: int = 7) -> list[dict[str, Any]]:
    """Tools of servers with fifty tools each."""
    draw = random.Random(seed)
    return [_tool(draw, number) for number in range(count)]


def queries(count: int, seed: int = 11) -> list[str]:
    """What somebody might ask of them: short wishes, longer ones, and some with a slip of the pen."""
    draw = random.Random(seed)
    return [_query(draw) for _ in range(count)]


def _tool(draw: random.Random, number: int) -> dict[str, Any]:
    action, thing, other = draw.choice(_ACTIONS), draw.choice(_THINGS), draw.choice(_THINGS)
    qualifier = draw.choice(_QUALIFIERS)
    server = f"{draw.choice(_THINGS)}_hub_{number // 50}"
    parameters = draw.sample(_PARAMETERS, draw.randint(1, 6))
    return {
        "name": f"{server}__{action}_{qualifier}_{thing}_{number}",
        "server": server,
        "description": (
            f"{action.capitalize()} {qualifier} {thing}s of a {other}. Returns the {thing} with its"
            f" {draw.choice(_THINGS)} and {draw.choice(_QUALIFIERS)} {draw.choice(_THINGS)}s."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                parameter: {"type": "string", "description": f"The {parameter.replace('_', ' ')} of the {thing}"}
                for parameter in parameters
            },
        },
    }


def _query(draw: random.Random) -> str:
    action, thing, other = draw.choice(_ACTIONS), draw.choice(_THINGS), draw.choice(_THINGS)
    qualifier = draw.choice(_QUALIFIERS)
    slip = thing[:2] + thing[3:]
    return draw.choice(
        (
            f"{action} {thing}",
            f"{action} the {qualifier} {thing}",
            f"I need to {action} a {qualifier} {thing} that belongs to a {other}, please",
            f"How can I {action} all {qualifier} {thing}s and then {draw.choice(_ACTIONS)} the {other}?",
            f"{action} {qualifier} {slip}",
        )
    )
