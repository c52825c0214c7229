"""What a config file would do, in lines for whoever decides whether to trust it.

Everything stands there as in the file, with no variable filled in: what is left out, or hidden, could be a command.
Hidden are only values of `headers` and secrets of `oauth`, which nothing runs, and those of `env` that can be nothing
but a secret.
Whatever the file says has one line, written as JSON where it is more than a plain word, so that nothing in it looks
like a line of ours. What runs is never cut; what means nothing to us is.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pegboard import exactjson
from pegboard.config import jsonc
from pegboard.config.aliases import with_own_keys
from pegboard.config.foreign_shape import SECTIONS
from pegboard.config.masking import is_secret_name
from pegboard.config.oauth_spellings import OAUTH_SECRETS
from pegboard.config.own import settings_keys
from pegboard.config.read import KEYS
from pegboard.config.variables import names_in
from pegboard.exactjson import as_list, as_object
from pegboard.log import REDACTED
from pegboard.names import fold_server_name
from pegboard.terminal import visible_json

# Where variables are filled in.
_FILLED = ("command", "args", "cwd", "url", "env", "headers", "oauth")
_ADDRESSES = frozenset({"url"})
# What decides about what runs, and where things are sent.
_WHOLE = frozenset({"cwd", "storage", "workspace", "chats", "hosts"}) | _ADDRESSES

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_WORD = re.compile(r"[A-Za-z0-9_@%+=:,./${}?&~*#-]+")
# No path, no option, and nothing that a shell would take apart.
_SECRET_VALUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.~+=:@!#*,-]*")

# From this length on it is said how long something is.
_LONG = 500
_MOST_OF_A_NAME, _MOST_OF_A_WORD, _MOST_OF_OTHERS = 100, 60, 200
_MOST_WORDS = 8


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that a config file would do."""

    # Of what kind its owner is, what that is called, the key, and the name below it.
    path: tuple[str, ...]
    owner: str
    place: str
    # All of it; it is compared, and never shown.
    value: str
    shown: str
    # For a command or an address: as much of it as fits on a line or two.
    brief: str | None = None

    @property
    def line(self) -> str:
        """The effect with its owner."""
        return f"{self.owner}: {self.shown}" if self.owner else self.shown


def review(text: str) -> list[Effect]:
    """All that a text that is a config would do: each server, the command first, the own section, and variables."""
    document = as_object(jsonc.parse(text).value) or {}
    effects = [effect for name, entry in _servers(document) for effect in _server(name, entry)]
    own = as_object(document.get("pegboard")) or {}
    effects += _members(("section", "pegboard"), "section pegboard", own, settings_keys())
    for variable, owners in _variables(document).items():
        shown = f"${_name(variable)} of your environment goes to {', '.join(owners)}"
        effects.append(Effect(("variable", variable), "", "", shown, shown))
    return effects


def overview(effects: Iterable[Effect]) -> list[str]:
    """The lines for a file that is new to whoever decides."""
    lines: list[str] = []
    owner = ""
    for effect in effects:
        if effect.owner not in {"", owner}:
            lines.append(f"{effect.owner}:")
        owner = effect.owner
        lines.append(f"  {effect.shown}" if owner else effect.shown)
    return lines


def changes(old: Iterable[Effect], new: Iterable[Effect]) -> list[str]:
    """The lines for a file that was trusted before: what changed, and whose it is."""
    before, after = ({effect.path: effect for effect in effects} for effects in (old, new))
    lines: list[str] = []
    for path, effect in after.items():
        was = before.get(path)
        if was is None:
            lines.append(f"+ {effect.line}")
        elif was.value != effect.value and was.shown == effect.shown:
            lines.append(f"  {effect.place} of {effect.owner} changed")
        elif was.value != effect.value:
            lines += [f"- {was.line}", f"+ {effect.line}"]
    lines += [f"- {was.line}" for path, was in before.items() if path not in after]
    # Who comes first has the first right to names.
    if _order(before, after) != _order(after, before):
        lines.append("  the order of the servers changed")
    return lines


def briefs(effects: Collection[Effect], trusted: Collection[Effect] = ()) -> list[str]:
    """The commands and addresses alone, long ones cut, of all whose entries are not as they were trusted."""
    owners = {effect.path[:2] for effect in set(effects) ^ set(trusted)}
    return [f"{each.owner}: {each.brief}" for each in effects if each.brief is not None and each.path[:2] in owners]


def _order(effects: Iterable[tuple[str, ...]], others: Collection[tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(path[1] for path in effects if path[0] == "server" and path in others))


def _servers(document: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for section in SECTIONS:
        yield from (as_object(document.get(section)) or {}).items()


def _server(name: str, entry: Any) -> Iterator[Effect]:
    path, owner = ("server", name), f"server {_name(name)}"
    members = as_object(entry)
    if members is None:
        yield _short_effect(path, owner, "is", entry)
        return
    members = with_own_keys(members)
    args = as_list(members.get("args"))
    given = [members.get("command"), *([members.get("args")] if args is None else args)]
    if words := [_word(word) for word in given if word is not None]:
        command = " ".join(words)
        yield Effect((*path, "runs"), owner, "runs", command, f"runs {_with_length(command)}", f"runs {_brief(words)}")
    others = {key: value for key, value in members.items() if key not in {"command", "args"}}
    yield from _members(path, owner, others, KEYS)


def _members(path: tuple[str, ...], owner: str, members: Mapping[str, Any], known: Collection[str]) -> Iterator[Effect]:
    unknown: dict[str, Any] = {}
    for key, value in members.items():
        inner = as_object(value) if key in {"env", "headers", "oauth"} else None
        if key not in known:
            unknown[key] = value
        elif inner is not None:
            for name, each in inner.items():
                yield _entry((*path, key, name), owner, f"{key} {_name(name)}", each)
        elif key in _WHOLE:
            shown = f"{key}: {_with_length(_word(value))}"
            brief = f"{key}: {_truncate(_word(value), _MOST_OF_OTHERS)}" if key in _ADDRESSES else None
            yield Effect((*path, key), owner, key, _as_json(value), shown, brief)
        else:
            yield _short_effect((*path, key), owner, key, value)
    if unknown:
        shown = f"other keys, which mean nothing here: {_truncate(_as_json(unknown), _MOST_OF_OTHERS)}"
        yield Effect((*path, "", ""), owner, "other keys", _as_json(unknown), shown)


def _entry(path: tuple[str, ...], owner: str, place: str, value: Any) -> Effect:
    """A variable that a server is given, a header that it is sent, or a setting of its sign-in."""
    *_, key, name = path
    is_sent = key == "headers" or (key == "oauth" and name in OAUTH_SECRETS)
    hides = not names_in(_as_json(value)) if is_sent else key == "env" and _is_secret(name, value)
    shown = REDACTED if hides else _with_length(_word(value))
    return Effect(path, owner, place, _as_json(value), f"{place}={shown}")


def _short_effect(path: tuple[str, ...], owner: str, place: str, value: Any) -> Effect:
    return Effect(path, owner, place, _as_json(value), f"{place}: {_truncate(_word(value), _MOST_OF_OTHERS)}")


def _is_secret(name: str, value: Any) -> bool:
    """Whether the value of a variable is a secret and nothing else: no command, no path, no option, no setting."""
    text = value if isinstance(value, str) else _as_json(value)
    return (
        _NAME.fullmatch(name) is not None
        and is_secret_name(name)
        and _SECRET_VALUE.fullmatch(text) is not None
        and shutil.which(text) is None
    )


def _variables(document: Mapping[str, Any]) -> dict[str, list[str]]:
    """Which variables of the environment are filled in, and for whom."""
    found: dict[str, dict[str, None]] = {}
    for name, entry in _servers(document):
        members = with_own_keys(as_object(entry) or {})
        texts = [text for key in _FILLED for text in _texts(members.get(key))]
        key = [f"{fold_server_name(name).upper()}_API_KEY"] if members.get("apiKeyFromEnv") is True else []
        for variable in [*key, *(each for text in texts for each in names_in(text))]:
            found.setdefault(variable, {})[f"server {_name(name)}"] = None
    for variable in [each for text in _texts(document.get("pegboard")) for each in names_in(text)]:
        found.setdefault(variable, {})["section pegboard"] = None
    return {variable: list(owners) for variable, owners in found.items()}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for each in as_list(value) or (as_object(value) or {}).values():
        yield from _texts(each)


def _name(name: str) -> str:
    return name if _NAME.fullmatch(name) else _truncate(_as_json(name), _MOST_OF_A_NAME)


def _word(value: Any) -> str:
    return value if isinstance(value, str) and _WORD.fullmatch(value) else _as_json(value)


def _as_json(value: Any) -> str:
    return visible_json(exactjson.dump(value).decode())


def _brief(words: list[str]) -> str:
    shown = " ".join(_truncate(word, _MOST_OF_A_WORD) for word in words[:_MOST_WORDS])
    return shown if len(words) <= _MOST_WORDS else f"{shown} ... ({len(words) - _MOST_WORDS:,} more arguments)"


def _with_length(text: str) -> str:
    return f"({len(text):,} characters) {text}" if len(text) > _LONG else text


def _truncate(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} ... ({len(text):,} characters)"
