"""The `pegboard` section of a config file: how Pegboard itself is to be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from pegboard.config.address import url_problem
from pegboard.config.audit import read_audit
from pegboard.config.auth import read_auth, refuse_misplaced
from pegboard.config.results import read_results
from pegboard.config.section import SectionContext
from pegboard.config.settings import CHANGE_POLICIES, MOST_ON_BOARD, Settings, ToolsetSettings
from pegboard.config.shape import ConfigNode
from pegboard.host_names import host_problem
from pegboard.names import nearest
from pegboard.toolsets.installed import TOOLSETS, load_parts

_Changes = Mapping[str, Any]


def own_settings(section: ConfigNode, environment: Mapping[str, str], remarks: list[str]) -> Settings:
    """The settings of the section; what is worth saying about it is added to the remarks."""
    context = SectionContext(environment, remarks)
    changes: dict[str, Any] = {}
    of_toolsets: list[ToolsetSettings] = []
    for key in section.members():
        if key not in settings_keys():
            close = nearest(key, settings_keys(), limit=1)
            remarks.append(f"pegboard.{key} is not a setting" + (f"; did you mean {close[0]}?" if close else ""))
        elif (node := section.get(key)) and key in _SETTINGS:
            changes.update(_SETTINGS[key](node, context))
        elif node:
            of_toolsets.append(load_parts("settings")[key].read_settings(node, context))
    return replace(Settings(), **changes, of_toolsets=tuple(of_toolsets))


def remark_misplaced(root: ConfigNode) -> list[str]:
    """Of each setting that stands beside the section instead of in it, that it does nothing there.

    Other clients have keys of their own in the file, which may have the same name: `tools` is such a one.
    """
    found = {key: node for key in settings_keys() if (node := root.get(key))}
    if auth := found.get("auth"):
        refuse_misplaced(auth)
    if (tools := found.get("tools")) and not (
        isinstance(tools.value, dict) and {"allow", "deny"} & tools.members().keys()
    ):
        del found["tools"]
    return [f'"{key}" stands outside of "pegboard", where nothing reads it: move it there' for key in found]


@cache
def settings_keys() -> tuple[str, ...]:
    """Every key of the section; those that toolsets read are named as they are."""
    return (*_SETTINGS, *load_parts("settings"))


def tool_patterns(node: ConfigNode) -> dict[str, tuple[str, ...]]:
    """Which tools are let through: `allow` and `deny`."""
    # Other clients write a plain list here, or a map of their own; only our shape means something to us.
    if not isinstance(node.value, dict):
        return {"allow": node.texts()} if isinstance(node.value, list) else {}
    patterns = {key: child.texts() for key in ("allow", "deny") if (child := node.get(key))}
    return {key: value for key, value in patterns.items() if value}


def _toolsets(node: ConfigNode, _: SectionContext) -> _Changes:
    for name in node.texts():
        if name not in TOOLSETS:
            raise node.wrong(f'names "{name}", which is not a toolset: use {", ".join(TOOLSETS)}')
    return {"toolsets": node.texts()}


def _hosts(node: ConfigNode, _: SectionContext) -> _Changes:
    for name in node.texts():
        if problem := host_problem(name):
            raise node.wrong(problem)
    return {"hosts": node.texts()}


def _storage(node: ConfigNode, context: SectionContext) -> _Changes:
    setting = context.fill_variables(node, node.text())
    if setting != "sqlite" and not re.match(r"sqlite:|postgres(ql)?://", setting):
        raise node.wrong('is not known: use "sqlite", "sqlite:PATH" or "postgresql://…"')
    return {"storage": setting}


def _registry(node: ConfigNode, context: SectionContext) -> _Changes:
    address = context.fill_variables(node, node.text())
    if problem := url_problem(address):
        raise node.wrong(problem)
    return {"registry": address}


# Every key of the section that is no toolset's, and how it is read.
_SETTINGS: dict[str, Callable[[ConfigNode, SectionContext], _Changes]] = {
    "expose": lambda node, _: {"expose": node.one_of("auto", "all", "search")},
    "pinned": lambda node, _: {"pinned": node.texts()},
    "toolsets": _toolsets,
    "tools": lambda node, _: tool_patterns(node),
    "boardSize": lambda node, _: {"board_size": node.whole_number(1, MOST_ON_BOARD)},
    "search": lambda node, _: {"search": node.one_of("lexical", "semantic")},
    "workspace": lambda node, context: {"workspace": context.folder(node, node.text())},
    "hosts": _hosts,
    "renamed": lambda node, _: {"renamed": {child.key: child.text() for child in node.children()}},
    "maxNameLength": lambda node, _: {"max_name_length": node.whole_number(16, 128)},
    "storage": _storage,
    "registry": _registry,
    "changes": lambda node, _: {"changes": node.one_of(*CHANGE_POLICIES)},
    "auth": read_auth,
    "audit": read_audit,
    "results": read_results,
}
