"""`${VAR}`, `${VAR:-default}`, `${env:VAR}` and `${input:id}` filled in from the environment, else from `.env` beside
the config; `${file:PATH}` from a file, and `${keyring:SERVICE/NAME}` from the user's keyring."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pegboard import system_keyring
from pegboard.config.dotenv import DotEnv
from pegboard.config.file import read_file

_VARIABLE = re.compile(r"\$?\$\{([^{}]*)\}")
# A secret is short, and what is named by mistake may be anything.
_MAX_FILE = 64 * 1024
# What seals our own secrets is for no server.
_OWN_KEY = "PEGBOARD_SECRET_KEY"


class MissingVariable(Exception):  # noqa: N818  it names what is missing
    """A variable without a value; the message names it."""


@dataclass(slots=True)
class Variables:
    """Fills in variables and remembers what it put in, so that it can be kept out of logs."""

    environment: Mapping[str, str]
    folder: Path
    used: set[str] = field(default_factory=set[str])
    # Where the paths of files begin; without it, neither files nor keyrings are read.
    base: Path | None = None
    # Those that were.
    files: set[Path] = field(default_factory=set[Path])
    dotenv: DotEnv = field(default_factory=DotEnv)
    # Nobody named the config: who can write beside it must not say what is run, or where to connect.
    is_found: bool = False
    _is_target: bool = False

    def fill(self, text: str) -> str:
        """The text with every variable replaced; `$${X}` stands for a literal `${X}`."""
        return _VARIABLE.sub(self._replace, text)

    def fill_target(self, text: str) -> str:
        """The same for what is run, or where to connect."""
        self._is_target = True
        try:
            return self.fill(text)
        finally:
            self._is_target = False

    def _replace(self, match: re.Match[str]) -> str:
        if match.group().startswith("$$"):
            return match.group()[1:]
        value = self._value(match.group(1))
        if value is None:
            raise MissingVariable(f"{match.group()} has no value{self._hint(match.group(1))}")
        return value

    def _value(self, expression: str) -> str | None:
        kind, colon, rest = expression.partition(":")
        if kind in {"input", "env"} and colon:
            return self._secret(_name(expression))
        if kind in _READ and colon:
            return self._read(kind, rest)
        name, has_default, default = expression.partition(":-")
        if has_default:
            return self._secret(name) or default
        folders = {"userHome": Path.home, "workspaceFolder": lambda: self.folder}
        return str(folders[name]()) if name in folders else self._secret(name)

    def _secret(self, name: str) -> str | None:
        if name.startswith(_OWN_KEY):
            raise MissingVariable(f"{name} is Pegboard's own key, and given to no server")
        value = self.environment.get(name)
        if value is None and not (self.is_found and self._is_target):
            value = self.dotenv.get(name)
        if value:
            self.used.add(value)
        return value

    def _read(self, kind: str, name: str) -> str | None:
        if self.base is None:
            return None
        value = self._file_text(self.base, name) if kind == "file" else _keyring_text(name)
        # A header is sent without the spaces around it, and an error may show it so.
        self.used |= {value, value.strip()}
        return value

    def _file_text(self, base: Path, name: str) -> str:
        """What a file says, without the line end that most editors add."""
        shown = f"${{file:{name}}} cannot be read"
        try:
            path = base / Path(name).expanduser()
            self.files.add(path)
            text = read_file(path, is_found=True, most=_MAX_FILE).decode()
        except UnicodeDecodeError:
            raise MissingVariable(f"{shown}: it is not UTF-8") from None
        except FileNotFoundError:
            raise MissingVariable(f"{shown}: there is no file {base / Path(name).expanduser()}") from None
        except (OSError, RuntimeError, ValueError) as exc:
            raise MissingVariable(f"{shown}: {getattr(exc, 'strerror', None) or exc}") from None
        text = text.removesuffix("\n").removesuffix("\r")
        if not text:
            raise MissingVariable(f"{shown}: it is empty")
        return text

    def _hint(self, expression: str) -> str:
        name, kind = _name(expression), expression.partition(":")[0]
        if kind in _READ:
            return ""
        if self.is_found and self._is_target and self.dotenv.get(name) is not None:
            return f": set {name} in the environment; .env does not count here, because the config was found by itself"
        broken = "" if self.dotenv.reason is None else f"; .env is not used: {self.dotenv.reason}"
        return f": set {name}{'' if kind == 'input' else ' in the environment'}{broken}"


_READ = frozenset({"file", "keyring"})


def _keyring_text(name: str) -> str:
    service, _, entry = name.rpartition("/")
    shown = f"${{keyring:{name}}}"
    if not service or not entry:
        raise MissingVariable(f"{shown} cannot be read: write ${{keyring:SERVICE/NAME}}")
    if service == system_keyring.SERVICE:
        raise MissingVariable(f"{shown} cannot be read: what Pegboard keeps there is given to no server")
    if not system_keyring.is_installed():
        raise MissingVariable(f"{shown} cannot be read: pip install 'pegboard[keyring]'")
    value = system_keyring.find(entry, service)
    if not value:
        advice = f"keyring set {service} {entry}"
        raise MissingVariable(f"{shown} cannot be read: unlock the keyring, or add the entry with: {advice}")
    return value


def names_in(text: str) -> list[str]:
    """The variables of the environment that would be filled in here."""
    found = [match.group(1) for match in _VARIABLE.finditer(text) if not match.group().startswith("$$")]
    named = [each for each in found if not _is_read(each)]
    return [name for each in named if (name := _name(each)) not in {"userHome", "workspaceFolder"}]


def sources_in(text: str) -> list[str]:
    """All that would be filled in here: variables by their names, `file:PATH` and `keyring:SERVICE/NAME`."""
    found = [match.group(1) for match in _VARIABLE.finditer(text) if not match.group().startswith("$$")]
    return [*names_in(text), *filter(_is_read, found)]


def _is_read(expression: str) -> bool:
    kind, colon, _ = expression.partition(":")
    return bool(colon) and kind in _READ


def _name(expression: str) -> str:
    kind, colon, rest = expression.partition(":")
    if colon and kind in {"input", "env"}:
        return input_variable(rest) if kind == "input" else rest
    return expression.partition(":-")[0]


def input_variable(identifier: str) -> str:
    """The environment variable that answers VS Code's `${input:identifier}`."""
    return "PEGBOARD_INPUT_" + re.sub(r"[^A-Za-z0-9]+", "_", identifier).upper()
