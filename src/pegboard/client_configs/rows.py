"""Plans as programs read them: the same in REST and in `--json`."""

from __future__ import annotations

from typing import Any

from pegboard.client_configs.check import CheckOutcome
from pegboard.client_configs.entries import snippet
from pegboard.client_configs.file_change import digest
from pegboard.client_configs.install import InstallPlan
from pegboard.client_configs.uninstall import UninstallPlan


def install_row(plan: InstallPlan, check: CheckOutcome | None = None) -> dict[str, Any]:
    """What an install does, or has done; `check` is what Pegboard answered afterwards."""
    client, file, change = plan.client, plan.file, plan.change
    link = client.link
    has_link = link is not None and not (client.link_needs_http and plan.target.url is None)
    return {
        "client": client.id,
        "file": None if file is None else str(file.path),
        "outcome": plan.outcome,
        "name": plan.name,
        "transport": plan.target.kind,
        "board": plan.target.board,
        "reason": plan.reason,
        "entry": dict(plan.entry),
        "snippet": snippet(client, plan.name, plan.entry),
        "link": link(plan.name, plan.entry) if link is not None and has_link else None,
        "replaces": list(plan.replaced),
        "kept": [{"name": name, "reason": reason} for name, reason in plan.kept.items()],
        "remarks": list(plan.remarks),
        "diff": plan.diff,
        # Of the file that the plan was made for: given back, it makes sure that nothing else is changed.
        "digest": digest(change.before if change else None),
        "next": client.after_install,
        **({} if check is None else {"check": {"tools": check.tools, "more": check.more, "problem": check.problem}}),
    }


def uninstall_row(plan: UninstallPlan) -> dict[str, Any]:
    """What an uninstall does, or has done."""
    return {
        "client": plan.client.id,
        "file": None if plan.file is None else str(plan.file.path),
        "outcome": "none" if plan.change is None else "delete" if plan.change.after is None else "remove",
        "names": list(plan.names),
        "exact": plan.is_exact,
        "restores": list(plan.restored),
        "remarks": list(plan.remarks),
        "diff": plan.diff,
        "digest": digest(plan.change.before if plan.change else None),
        "next": plan.client.after_uninstall,
    }
