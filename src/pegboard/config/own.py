"""The `pegboard` section of a config file: how Pegboard itself is to be."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pegboard.config.settings import TOOLSETS, Settings
from pegboard.config.shape import ConfigNode
from pegboard.config.variables import MissingVariable, Variables
from pegboard.host_names import host_problem
from pegboard.names import MAX_NAMESPACE, key_problem, nearest

_Changes = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Around:
    """What a setting may need besides itself: the environment, and a place for what is worth saying."""

    environment: Mapping[str, str]
    remarks: list[str]


def own_settings(section: ConfigNode, environment: Mapping[str, str], remarks: list[str]) -> Settings:
    """The settings of the section; what is worth saying about it is added to the remarks."""
    around = _Around(environment, remarks)
    changes: dict[str, Any] = {}
    for key in section.members():
        if (read := SETTINGS.get(key)) is None:
            close = nearest(key, SETTINGS, limit=1)
            remarks.append(f"pegboard.{key} is not a setting" + (f"; did you mean {close[0]}?" if close else ""))
        elif node := section.get(key):
            changes.update(read(node, around))
    return replace(Settings(), **changes)


def tool_patterns(node: ConfigNode) -> dict[str, tuple[str, ...]]:
    """Which tools are let through: `allow` and `deny`."""
    # Other clients write a plain list here, or a map of their own; only our shape means something to us.
    if not isinstance(node.value, dict):
        return {"allow": node.texts()} if isinstance(node.value, list) else {}
    patterns = {key: child.texts() for key in ("allow", "deny") if (child := node.get(key))}
    return {key: value for key, value in patterns.items() if value}


# The longest key, namespace and link there can be have to fit in, and a third of it is a summary.
_LEAST_ANSWER = 12_500


def _memory(node: ConfigNode, around: _Around) -> _Changes:
    _remark_others(node, ("namespace", "answerSize"), around)
    changes: dict[str, Any] = {}
    if namespace := node.get("namespace"):
        if problem := key_problem(namespace.text(), MAX_NAMESPACE):
            raise namespace.wrong(problem)
        changes["memory_namespace"] = namespace.text()
    if size := node.get("answerSize"):
        changes["memory_answer_size"] = size.whole_number(_LEAST_ANSWER, 1_000_000)
    return changes


def _chats(node: ConfigNode, around: _Around) -> _Changes:
    _remark_others(node, ("exports", "remote"), around)
    changes: dict[str, Any] = {}
    if exports := node.get("exports"):
        changes["chats_exports"] = tuple(_folder(exports, folder, around) for folder in exports.texts())
    if remote := node.get("remote"):
        changes["chats_remote"] = remote.flag()
    return changes


def _remark_others(node: ConfigNode, known: tuple[str, ...], around: _Around) -> None:
    around.remarks.extend(f"pegboard.{node.key}.{key} is not a setting" for key in node.members() if key not in known)


def _toolsets(node: ConfigNode, _: _Around) -> _Changes:
    for name in node.texts():
        if name not in TOOLSETS:
            raise node.wrong(f'names "{name}", which is not a toolset: use {", ".join(TOOLSETS)}')
    return {"toolsets": node.texts()}


def _hosts(node: ConfigNode, _: _Around) -> _Changes:
    for name in node.texts():
        if problem := host_problem(name):
            raise node.wrong(problem)
    return {"hosts": node.texts()}


def _folder(node: ConfigNode, text: str, around: _Around) -> str:
    """A folder, as seen from where the config file is."""
    return str(node.file.resolve().parent / Path(_fill_variables(node, text, around)).expanduser())


def _fill_variables(node: ConfigNode, text: str, around: _Around) -> str:
    try:
        return Variables(around.environment, node.file.resolve().parent).fill(text)
    except MissingVariable as exc:
        raise node.wrong(str(exc)) from None


def _storage(node: ConfigNode, around: _Around) -> _Changes:
    setting = _fill_variables(node, node.text(), around)
    if setting != "sqlite" and not re.match(r"sqlite:|postgres(ql)?://", setting):
        raise node.wrong('is not known: use "sqlite", "sqlite:PATH" or "postgresql://…"')
    return {"storage": setting}


# Every key of the section, and how it is read.
SETTINGS: dict[str, Callable[[ConfigNode, _Around], _Changes]] = {
    "expose": lambda node, _: {"expose": node.one_of("auto", "all", "search")},
    "pinned": lambda node, _: {"pinned": node.texts()},
    "toolsets": _toolsets,
    "tools": lambda node, _: tool_patterns(node),
    "search": lambda node, _: {"search": node.one_of("lexical", "semantic")},
    "memory": _memory,
    "chats": _chats,
    "workspace": lambda node, around: {"workspace": _folder(node, node.text(), around)},
    "hosts": _hosts,
    "renamed": lambda node, _: {"renamed": {child.key: child.text() for child in node.children()}},
    "maxNameLength": lambda node, _: {"max_name_length": node.whole_number(16, 128)},
    "storage": _storage,
}
