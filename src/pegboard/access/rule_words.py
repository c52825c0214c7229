"""A rule in words: one line that says what it gives."""

from __future__ import annotations

from collections.abc import Sequence

from pegboard.access.quota import Quota
from pegboard.access.rule import Rule

EVERYTHING = "everything"


def name_rule(number: int) -> str:
    """What a rule of the config is called, as in errors of the config; the first has number 1."""
    return f"auth.rules[{number - 1}]"


def describe_rules(rules: Sequence[Rule], *, hides_names: bool = False) -> str:
    """What several rules give that all hold."""
    said = [words for rule in rules if (words := describe_rule(rule, hides_names=hides_names)) != EVERYTHING]
    return ", and of that ".join(dict.fromkeys(said)) or EVERYTHING


def describe_rule(rule: Rule, *, hides_names: bool = False) -> str:
    """What a rule gives. `hides_names`: for whoever it is for, who is not told what it keeps from them."""
    lists = {
        "servers": rule.servers,
        "toolsets": rule.toolsets,
        "tools": rule.allow or None,
        "not": rule.deny or None,
        "boards": rule.boards,
        "namespaces": rule.namespaces,
    }
    if hides_names and rule.deny:
        lists["not"] = ("all tools",)
    parts = [
        f"{what} {' '.join(names)}" if names else f"no {what}" for what, names in lists.items() if names is not None
    ]
    parts += ["read-only"] if rule.read_only else []
    parts += describe_quota(rule.quota)
    parts += [f"{pattern} {limit}" for pattern, quota in rule.server_quotas for limit in describe_quota(quota)]
    parts += [f"{pattern} with scope {' '.join(scopes)}" for pattern, scopes in rule.scopes if not hides_names]
    parts = parts or [EVERYTHING]
    return "; ".join([*parts, "admin"] if rule.admin else parts)


def describe_quota(quota: Quota) -> list[str]:
    """Its limits, each by itself."""
    rate = [] if quota.rate is None else [str(quota.rate)]
    return rate if quota.in_flight is None else [*rate, f"{quota.in_flight} at once"]
