"""Projects with an OpenSpec folder, made of a few words."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pegboard.toolsets.tasks.registry import Registry

SPEC = """# Sign-in

## Purpose
Who may come in, and how they prove that they are who they say they are.

## Requirements
### Requirement: Passwords
The system SHALL check passwords.

#### Scenario: A wrong one
- **WHEN** the password is wrong
- **THEN** nobody comes in
"""
PROPOSAL = """# Change: Add a login

## Why
Nobody can sign in today, and everybody who comes along can read everything there is.

## What Changes
- A form to sign in with
"""
DELTA = """## ADDED Requirements
### Requirement: A form
The system MUST show a form.

#### Scenario: At the door
- **WHEN** somebody comes
- **THEN** the form is shown
"""


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Files below `openspec`, by their paths; gives the folder that holds it."""
    for name, text in files.items():
        path = root / "openspec" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def write_tasks(root: Path, **changes: str) -> Path:
    """The tasks.md of changes; an underscore in a change's name stands for a hyphen."""
    return write(root, {f"changes/{name.replace('_', '-')}/tasks.md": text for name, text in changes.items()})


def tasks_md(root: Path, change: str) -> Path:
    """The file of a change."""
    return root / "openspec" / "changes" / change / "tasks.md"


def whole(root: Path) -> Path:
    """A folder in which everything is right."""
    return write(
        root,
        {
            "specs/auth/spec.md": SPEC,
            "changes/add-login/proposal.md": PROPOSAL,
            "changes/add-login/design.md": "# Design\n\nAs plain as can be.\n",
            "changes/add-login/tasks.md": "# Tasks\n\n- [x] 1.1 Plan\n- [ ] 1.2 Build <!-- depends: 1 -->\n",
            "changes/add-login/specs/auth/spec.md": DELTA,
            "changes/archive/2020-01-01-old/tasks.md": "- [ ] long ago\n",
        },
    )


async def statuses(registry: Registry) -> dict[str, str]:
    """The status of every task."""
    return {str(task.id): task.status for task in (await registry.list(limit=500)).tasks}
