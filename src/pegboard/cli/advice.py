"""What to do about a server that does not work, by what is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pegboard.cli.program import config_file
from pegboard.config import ConfigError, ServerSpec, read_settings
from pegboard.config.secrets import display_address

_RESTART = "in the shell that starts `pegboard serve`, then restart it"
_INSTALL = {
    **dict.fromkeys(("uvx", "uv"), "install uv (`pip install uv` or `pipx install uv`), which brings uvx"),
    **dict.fromkeys(("npx", "npm", "node"), "install Node.js, which brings npx"),
    **dict.fromkeys(("bunx", "bun"), "install Bun, which brings bunx"),
    "docker": "install Docker, and start it",
}
_UNSET = re.compile(r"\$\{[^{}]*\} has no value: set (\w+)")
_BROKEN = re.compile(r"; \.env is not used: (.+)")
_RUNNERS = frozenset({"npx", "uvx", "bunx", "pnpx"})
# Options of theirs with a value; what stands behind `--from` and `--package` is the package.
_WITH_VALUE = frozenset({"-p", "--package", "--from", "--with", "--python", "--registry", "--index", "--index-url"})
_PACKAGE_OPTIONS = frozenset({"-p", "--package", "--from"})


@dataclass(frozen=True, slots=True)
class _Rule:
    """A fault, known by what is said of it, and what to do."""

    pattern: re.Pattern[str]
    advise: Callable[[re.Match[str], ServerSpec], str]


def advise_about(name: str, said: str, path: Path) -> str:
    """What to do about a server of this config, of which this is said; nothing if its entry cannot be read."""
    from pegboard.cli.http_transport import find_running

    try:
        spec = read_settings(path, os.environ).servers.get(name)
    except ConfigError:
        return ""
    return advise(said, spec, is_gateways=find_running(path) is not None) if spec else ""


def advise(said: str, spec: ServerSpec, *, is_gateways: bool = False) -> str:
    """What to do about a server of which this is said, by a gateway that runs or by this process."""
    variable = _UNSET.search(said)
    if variable is not None and is_gateways and os.environ.get(variable[1]):
        # To ask again would be the same again.
        return f"the gateway that runs was started without {variable[1]}: stop it, and start it in a shell that has it"
    advice = _advice_for(said, spec)
    has_said_more = is_gateways and "; it said: " in said
    return f"{advice}. All that it said: pegboard logs {spec.name}" if has_said_more else advice


def _advice_for(said: str, spec: ServerSpec) -> str:
    for rule in _RULES:
        if (match := rule.pattern.search(said)) is not None:
            return rule.advise(match, spec)
    if spec.problem:
        return "correct its entry in the config"
    shown = display_address(spec)
    if spec.command is None:
        return f"is {shown} the right address, and is it up?"
    if spec.command in _RUNNERS:
        return f"is the package's name right? Try it by hand: {shown}"
    return f"run it by hand to see what it says: {shown}"


def _set_variable(match: re.Match[str], _: ServerSpec) -> str:
    if (line := _BROKEN.search(match.string)) is not None:
        return f"correct .env beside the config first ({line[1]}): none of it is used, and {match[1]} may stand there"
    path = config_file()
    beside = "" if path is None else f". Or write {match.group(1)}=… into {path.parent / '.env'}"
    return f"export {match.group(1)} {_RESTART}{beside}"


def _make_file(match: re.Match[str], _: ServerSpec) -> str:
    return f"the file is missing: write the value into {match.group(1)}, or correct the path in the config"


def _install_command(match: re.Match[str], spec: ServerSpec) -> str:
    command = match.group(1)
    if command in _INSTALL:
        return _INSTALL[command]
    return f'install {spec.redactor.clean(command)}, or give its full path in "command"'


def _check_package(_: re.Match[str], spec: ServerSpec) -> str:
    package = _package(spec)
    named = f"no package is called {package!r}" if package else "there is no such package"
    return f'{named}: check the spelling in "args"'


def _check_network(_: re.Match[str], spec: ServerSpec) -> str:
    return (
        f"{spec.command} could not download the package: is the network there? Try it by hand: {display_address(spec)}"
    )


def _give_token(_: re.Match[str], spec: ServerSpec) -> str:
    if _has_authorization(spec):
        return 'the server does not accept the Authorization in "headers": is it still valid, and complete?'
    name = f"{spec.name.upper()}_TOKEN"
    return f'put "headers": {{"Authorization": "Bearer ${{{name}}}"}} into its entry, and export {name} {_RESTART}'


def _sign_in(_: re.Match[str], spec: ServerSpec) -> str:
    if _has_authorization(spec):
        return "the server does not accept the token that it is given: is it still valid?"
    return "the server wants OAuth. If it takes tokens as well: " + _give_token(_, spec)


def _wait_for_authorization(_: re.Match[str], spec: ServerSpec) -> str:
    return (
        "this is about its authorization server, where sign-ins are renewed: is that up, and can it be reached from"
        f" here? Try again later: pegboard refresh {spec.name}"
    )


def _check_rights(_: re.Match[str], spec: ServerSpec) -> str:
    if _has_authorization(spec):
        return "the credentials are known there, but have no right to this: check what the token may do"
    return _give_token(_, spec)


def _check_port(_: re.Match[str], spec: ServerSpec) -> str:
    return f"nothing listens there: is the server started, and is the port right? {display_address(spec)}"


def _check_host(_: re.Match[str], spec: ServerSpec) -> str:
    return f"is the host's name right, and is the network there? {display_address(spec)}"


def _check_path(_: re.Match[str], spec: ServerSpec) -> str:
    return (
        f'is the path right? Many servers are at /mcp, older ones at /sse with "type": "sse". {display_address(spec)}'
    )


def _give_time(match: re.Match[str], spec: ServerSpec) -> str:
    setting = match.group(1)
    if setting == "connectTimeout":
        return f'is it up? {display_address(spec)} If it is only slow, raise "{setting}" in its entry'
    return f'try it by hand: {display_address(spec)}. If it is only slow to start, raise "{setting}" in its entry'


def _check_program(_: re.Match[str], spec: ServerSpec) -> str:
    return f'is this an MCP server over stdio? Some need an argument for that, like "stdio": {display_address(spec)}'


def _has_authorization(spec: ServerSpec) -> bool:
    return any(name.lower() == "authorization" for name in spec.headers)


def _package(spec: ServerSpec) -> str | None:
    """The package that npx, uvx and the like are to run."""
    words = iter(spec.args)
    for word in words:
        if word in _WITH_VALUE:
            value = next(words, None)
            if word in _PACKAGE_OPTIONS:
                return value
        elif not word.startswith("-"):
            return word
    return None


def _rule(pattern: str, advise: Callable[[re.Match[str], ServerSpec], str]) -> _Rule:
    return _Rule(re.compile(pattern, re.IGNORECASE), advise)


# The first that fits counts.
_RULES = (
    _Rule(_UNSET, _set_variable),
    _rule(r"\$\{file:[^{}]*\} cannot be read: there is no file (.+)", _make_file),
    # It stands before what names an address: that is not the server's own.
    _rule(r"its sign-in cannot be renewed now", _wait_for_authorization),
    _rule(r"is disabled$", lambda _, spec: f"pegboard enable {spec.name}"),
    _rule(r"command '([^']+)' was not found on PATH", _install_command),
    _rule(r"there is no program at ", lambda _, __: 'install it, or correct "command" in its entry'),
    _rule(r"wants a sign-in: |wants more rights .*: pegboard login", lambda _, spec: f"pegboard login {spec.name}"),
    _rule(r"wants a sign-in with OAuth", _sign_in),
    _rule(r"wants credentials|HTTP 401", _give_token),
    _rule(r"refused the credentials|HTTP 403", _check_rights),
    _rule(
        r"E404|is not in this registry|was not found in the package registry|No matching distribution", _check_package
    ),
    _rule(r"EAI_AGAIN|ENOTFOUND|ETIMEDOUT|ECONNREFUSED .*registry|Failed to fetch|dns error", _check_network),
    _rule(r"\[Errno (?:111|61|10061)\]|connection refused|Connect call failed", _check_port),
    _rule(r"Name or service not known|nodename nor servname|getaddrinfo|No address associated", _check_host),
    _rule(r'timed out: .*its "(\w+)"', _give_time),
    _rule(r"HTTP 40[45]\b", _check_path),
    _rule(r"which is not JSON-RPC", _check_program),
)
