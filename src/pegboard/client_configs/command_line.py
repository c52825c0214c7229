"""A command line as people copy it: the command of a server (`npx -y pkg`), its address, or the command that adds it to
a client (`claude mcp add …`)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard.client_configs.reading import UnreadableText

_URL = re.compile(r"https?://\S+")
# A drive of Windows has one letter.
_OTHER_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
_BARE_ADDRESS = re.compile(
    r"(?:[\w-]+\.)+[A-Za-z]{2,}(?::\d+)?/\S*|(?:localhost|(?:\d{1,3}\.){3}\d{1,3})(?::\d+(?:/\S*)?|/\S*)"
)
# Where packages are read about.
_WEB_PAGES = re.compile(r"https?://(?:www\.)?(?:github\.com|gitlab\.com|npmjs\.com|pypi\.org)/.*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*[:=]\s*(.*)", re.DOTALL)
_PROGRAM = re.compile(r"[\w.@~$/\\:{}+-]+")
# Programs that add a server: what stands between them and the name.
_ADDERS = {
    **{(program, "mcp", "add"): "add" for program in ("claude", "codex", "gemini", "copilot", "opencode", "cline")},
    **{(program, "mcp", "add"): "add" for program in ("amp", "qwen", "kimi", "q", "kiro-cli", "droid", "crush")},
    **{(program, "mcp", "add-json"): "json" for program in ("claude", "copilot", "qwen")},
    ("pegboard", "add"): "add",
    ("pegboard", "add-json"): "json",
}
_ADD_TO_VSCODE = frozenset({"code", "code-insiders", "codium", "cursor"})
_WITH_ENV = frozenset({"-e", "--env"})
_WITH_HEADER = frozenset({"-H", "--header"})
_WITH_TRANSPORT = frozenset({"-t", "--transport", "--type"})
# Options that say where a client keeps it, or how it treats it; each has a value.
_IGNORED = frozenset({"-s", "--scope", "--config", "-c", "--description"})
_SIGN_IN = {"--client-id": "clientId", "--callback-port": "callbackPort"}
_TIMES = frozenset({"--timeout"})
# Python's `shlex` takes quadratic time for a long word.
_MOST_CHARACTERS = 32_768


def parse_command_line(text: str) -> dict[str, Any]:
    """The entry that a command line means, with its `name` where it says one; raises `UnreadableText`.

    One that adds JSON gives `{"name": …, "json": text}`.
    """
    words = _split(text)
    if not words:
        raise UnreadableText("there is nothing in it")
    for start, kind in _ADDERS.items():
        if tuple(words[: len(start)]) == start:
            rest = words[len(start) :]
            return _parse_add_json(rest) if kind == "json" else _parse_add(rest)
    if words[0] in _ADD_TO_VSCODE and "--add-mcp" in words[:-1]:
        return {"json": words[words.index("--add-mcp") + 1]}
    return _plain_command(words)


def _split(text: str) -> list[str]:
    joined = re.sub(r"\\\r?\n", " ", text).strip()
    lines = [line for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) > 1:
        raise UnreadableText("it is neither JSON, TOML, YAML nor one command")
    return split_words(re.sub(r"\A\s*(?:[$>%]\s+)?", "", "".join(lines)))


def split_words(line: str) -> list[str]:
    """The words of a command line, as a shell would take them apart; raises `UnreadableText`."""
    if len(line) > _MOST_CHARACTERS:
        raise UnreadableText(f"it is too long for a command: more than {_MOST_CHARACTERS:,} characters")
    try:
        return shlex.split(line)
    except ValueError:
        raise UnreadableText("it has a quote that is never closed") from None


def _plain_command(words: list[str]) -> dict[str, Any]:
    if len(words) == 1 and _URL.fullmatch(words[0]):
        if _WEB_PAGES.fullmatch(words[0]):
            raise UnreadableText("this is a web page: paste the snippet that stands there")
        return {"url": words[0]}
    _refuse_address(words[0])
    env: dict[str, str] = {}
    if words[0] == "env":
        words = words[1:]
    while words and (found := _ASSIGNMENT.fullmatch(words[0])):
        env[found[1]] = found[2]
        words = words[1:]
    if not words or not _PROGRAM.fullmatch(words[0]) or words[0].endswith(":"):
        raise UnreadableText("it is neither JSON, TOML, YAML, a link nor a command")
    return _command(words, env)


def _refuse_address(word: str) -> None:
    """An address that would count as a program."""
    if scheme := _OTHER_SCHEME.match(word):
        raise UnreadableText(f"{scheme[1]}: is no address of a server: that begins with https:// or http://")
    if _BARE_ADDRESS.fullmatch(word) and not Path(word).exists():
        raise UnreadableText(f"is it an address? Put https:// before it: https://{word}")


def _command(words: list[str], env: Mapping[str, str]) -> dict[str, Any]:
    return {"command": words[0], "args": words[1:], **({"env": dict(env)} if env else {})}


def _parse_add_json(words: list[str]) -> dict[str, Any]:
    rest = _Options.read(words).rest
    if len(rest) != 2:
        raise UnreadableText("it needs a name and one JSON text in quotes")
    return {"name": rest[0], "json": rest[1]}


def _parse_add(words: list[str]) -> dict[str, Any]:
    options = _Options.read(words)
    name, target = options.rest[:1], options.rest[1:]
    if options.url:
        target = [options.url]
    if not name or not target:
        raise UnreadableText("it needs a name, and an address or a command")
    times = {"timeout": options.timeout} if options.timeout else {}
    if _URL.fullmatch(target[0]):
        kind = {"type": options.transport} if options.transport else {}
        headers = {"headers": options.headers} if options.headers else {}
        env = {"env": options.env} if options.env else {}
        oauth = {"oauth": options.oauth} if options.oauth else {}
        return {"name": name[0], **kind, "url": target[0], **headers, **env, **oauth, **times, **options.others}
    headers = {"headers": options.headers} if options.headers else {}
    return {"name": name[0], **_command(target, options.env), **headers, **times, **options.others}


@dataclass(slots=True)
class _Options:
    """The options of a command that adds a server, and what stands beside them."""

    rest: list[str] = field(default_factory=list[str])
    env: dict[str, str] = field(default_factory=dict[str, str])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    transport: str = ""
    url: str = ""
    timeout: int = 0
    oauth: dict[str, str | int] = field(default_factory=dict[str, str | int])
    # What says something to that client alone.
    others: dict[str, str | bool] = field(default_factory=dict[str, str | bool])

    @classmethod
    def read(cls, words: list[str]) -> _Options:
        options = cls()
        rest = iter(words)
        for word in rest:
            is_of_command = len(options.rest) >= 2 and not _URL.fullmatch(options.rest[1])
            if word == "--":
                options.rest += rest
            elif is_of_command or not word.startswith("-") or word == "-":
                options.rest.append(word)
            else:
                name, equals, value = word.partition("=")
                options.take(name, value if equals else None, rest)
        return options

    def take(self, name: str, value: str | None, rest: Iterator[str]) -> None:
        """One option; one that is not known has no value."""
        if name not in _WITH_ENV | _WITH_HEADER | _WITH_TRANSPORT | _IGNORED | _TIMES | _SIGN_IN.keys() | {"--url"}:
            self.others[name] = True
            return
        text = next(rest, "") if value is None else value
        if name in _WITH_ENV:
            key, equals, content = text.partition("=")
            self.env[key] = content if equals else f"${{{key}}}"
        elif name in _WITH_HEADER and (found := _HEADER.fullmatch(text)):
            self.headers[found[1]] = found[2]
        elif name in _WITH_TRANSPORT:
            self.transport = text
        elif name in _SIGN_IN:
            self.oauth[_SIGN_IN[name]] = int(text) if re.fullmatch("[0-9]{1,5}", text) and "port" in name else text
        elif name == "--url":
            self.url = text
        elif name in _TIMES and re.fullmatch("[0-9]{1,9}", text):
            self.timeout = int(text)
        else:
            self.others[name] = text
