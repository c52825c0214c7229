"""`${VAR}`, `${VAR:-default}`, `${env:VAR}` and `${input:id}` filled in from the environment."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

_VARIABLE = re.compile(r"\$?\$\{([^{}]*)\}")


class MissingVariable(Exception):  # noqa: N818  it names what is missing
    """A variable without a value; the message names it."""


@dataclass(slots=True)
class Variables:
    """Fills in variables and remembers what it put in, so that it can be kept out of logs."""

    environment: Mapping[str, str]
    folder: Path
    used: set[str] = field(default_factory=set[str])

    def fill(self, text: str) -> str:
        """The text with every variable replaced; `$${X}` stands for a literal `${X}`."""
        return _VARIABLE.sub(self._replace, text)

    def _replace(self, match: re.Match[str]) -> str:
        if match.group().startswith("$$"):
            return match.group()[1:]
        value = self._value(match.group(1))
        if value is None:
            raise MissingVariable(f"{match.group()} has no value{_hint(match.group(1))}")
        return value

    def _value(self, expression: str) -> str | None:
        kind, colon, rest = expression.partition(":")
        if kind == "input" and colon:
            return self._secret(input_variable(rest))
        if kind == "env" and colon:
            return self._secret(rest)
        name, has_default, default = expression.partition(":-")
        if has_default:
            return self._secret(name) or default
        if name == "userHome":
            return str(Path.home())
        if name == "workspaceFolder":
            return str(self.folder)
        return self._secret(name)

    def _secret(self, name: str) -> str | None:
        value = self.environment.get(name)
        if value:
            self.used.add(value)
        return value


def names_in(text: str) -> list[str]:
    """The variables of the environment that would be filled in here."""
    found = [match.group(1) for match in _VARIABLE.finditer(text) if not match.group().startswith("$$")]
    return [name for each in found if (name := _name(each)) not in {"userHome", "workspaceFolder"}]


def _name(expression: str) -> str:
    kind, colon, rest = expression.partition(":")
    if colon and kind in {"input", "env"}:
        return input_variable(rest) if kind == "input" else rest
    return expression.partition(":-")[0]


def input_variable(identifier: str) -> str:
    """The environment variable that answers VS Code's `${input:identifier}`."""
    return "PEGBOARD_INPUT_" + re.sub(r"[^A-Za-z0-9]+", "_", identifier).upper()


def _hint(expression: str) -> str:
    where = "" if expression.startswith("input:") else " in the environment"
    return f": set {_name(expression)}{where}"
