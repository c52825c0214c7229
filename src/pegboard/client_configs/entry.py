"""One server's entry of any client, translated into Pegboard's: every key is carried over, or named as left out."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from pegboard.client_configs.command_line import split_words
from pegboard.client_configs.foreign_variables import VariableTranslator
from pegboard.client_configs.reading import LeftOut, UnreadableText
from pegboard.config.aliases import ALIASES
from pegboard.config.oauth_spellings import ENTRY_KEYS, OAUTH_ENTRY_KEYS, OAUTH_KEYS, own_oauth
from pegboard.config.read import KEYS
from pegboard.exactjson import as_list, as_object
from pegboard.names import correct_spelling

# Each of our keys, and what others call it; the first that is there counts.
_NAMES: dict[str, tuple[str, ...]] = {
    **{key: (key, *aliases) for key, aliases in ALIASES.items()},
    "type": ("type", "transport", "transportType"),
    "allow": ("includeTools", "enabled_tools", "available_tools", "enabledTools", "allowedTools", "allowed_tools"),
    "deny": ("excludeTools", "disabled_tools", "disabledTools", "excluded_tools"),
}
_TYPES = {
    **dict.fromkeys(("stdio", "local", "command"), "stdio"),
    **dict.fromkeys(("http", "streamable-http", "streamablehttp", "streamable_http", "http-stream"), "http"),
    "sse": "sse",
    # It may speak either.
    "remote": "",
}
_BUILT_IN = frozenset({"builtin", "platform", "frontend", "inline_python"})
_APPROVAL = "approval stays with the client"
_ABOUT = "it only describes the server"
_SIGN_IN = "sign in anew"
_REASONS = {
    **dict.fromkeys(("autoApprove", "alwaysAllow", "trust", "autoApproveTools", "approvalMode"), _APPROVAL),
    **dict.fromkeys(("default_tools_approval_mode", "autoAllow", "auto_approve"), _APPROVAL),
    **dict.fromkeys(("oauth", "auth", "authProviderType", *ENTRY_KEYS), _SIGN_IN),
    **dict.fromkeys(("description", "name", "title", "display_name", "icon", "icons", "id", "version", "tags"), _ABOUT),
    **dict.fromkeys(("gallery", "bundled", "source", "author", "homepage", "$schema", "repository"), _ABOUT),
    **dict.fromkeys(("dev", "sandbox", "sandboxEnabled", "remote", "required"), "Pegboard has nothing like it"),
}
# A key of Pegboard's own that somebody else's text must not set: it would send away what is in the environment.
_OWN_ONLY = {
    "apiKeyFromEnv": "it would send a key of your environment: set it in the config yourself",
    **dict.fromkeys(("envFile", "env_file"), "it would be given what is in that file: set it in the config yourself"),
}
_OPTION = "it is about that client"
_UNKNOWN = "Pegboard does not know it"
_FOREIGN_KEYS = (
    {name for names in _NAMES.values() for name in names}
    | _REASONS.keys()
    | _OWN_ONLY.keys()
    | {"enabled", "disabled", "timeout", "connectionTimeout", "requestOptions", "env_vars", "env_keys", "tools"}
    | {"startup_timeout_sec", "startup_timeout_ms", "tool_timeout_sec", "bearer_token_env_var"}
    | {"bearer_token", "authorization_token", "env_http_headers"}
)
_ORDER = ("type", "command", "args", "env", "cwd", "url", "headers", "oauth", "enabled")
_ENDLESS = 1e12
# An operating system gives a program hardly more.
_MOST_MEMBERS, _MOST_CHARACTERS = 1000, 2**17
# A program without a path, and words behind it.
_COMMAND_LINE = re.compile(r"\s*[\w.@-]+\s+\S")


class UnusableEntry(Exception):  # noqa: N818  it says what the entry is
    """An entry that cannot become one of ours; the message says why."""

    def __init__(self, reason: str, *, is_skipped: bool = False) -> None:
        super().__init__(reason)
        self.is_skipped = is_skipped


@dataclass(frozen=True, slots=True)
class EntryTranslation:
    """An entry in Pegboard's shape."""

    entry: dict[str, Any] = field(repr=False)
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]


def translate_entry(raw: Mapping[str, Any], variables: VariableTranslator) -> EntryTranslation:
    """Pegboard's entry for a client's; raises `UnusableEntry`."""
    return _EntryTranslator(dict(raw), variables).translate()


class _EntryTranslator:
    def __init__(self, raw: dict[str, Any], variables: VariableTranslator) -> None:
        self.raw = raw
        self.variables = variables
        self.entry: dict[str, Any] = {}
        self.left_out: list[LeftOut] = []
        self.unread = dict.fromkeys(raw)
        if (transport := as_object(raw.get("transport"))) is not None:
            # Cline's form.
            self._pop("transport")
            del raw["transport"]
            self._open("transport", transport)

    def translate(self) -> EntryTranslation:
        kind = self._kind()
        self._check_spelling()
        self._take_address(kind)
        self._take_sign_in()
        self._take_switches()
        self._take_times()
        self._take_tools()
        self._take_rest()
        _check_size(self.entry)
        order = {key: at for at, key in enumerate(_ORDER)}
        entry = dict(sorted(self.entry.items(), key=lambda item: order.get(item[0], len(order))))
        return EntryTranslation(entry, tuple(self.left_out), tuple(self.variables.notes))

    def _kind(self) -> str | None:
        given = self._take("type")
        if given is None:
            return None
        if not isinstance(given, str):
            raise UnusableEntry("its type is not a text")
        word = given.strip()
        if word.lower() in _BUILT_IN:
            raise UnusableEntry("it is built into its client", is_skipped=True)
        known = _TYPES.get(word.lower())
        if known is None:
            raise UnusableEntry(f'type "{word[:40]}" is not known: Pegboard speaks stdio, http and sse')
        return known

    def _check_spelling(self) -> None:
        """A key that is almost one that means something is a mistake, and its value would be missing."""
        for key in self.unread:
            if key in _FOREIGN_KEYS or key in KEYS:
                continue
            meant = correct_spelling(key, KEYS)
            if meant is not None and meant not in self.raw:
                raise UnusableEntry(f'"{key[:40]}" is not a key: did you mean "{meant}"?')

    def _take_address(self, kind: str | None) -> None:
        has_command, has_url = (any(name in self.raw for name in _NAMES[key]) for key in ("command", "url"))
        is_command = kind == "stdio" if kind is not None and (has_command and has_url) else has_command
        if is_command:
            self._take_command()
            unused = ("url", "headers")
        elif has_url:
            self._take_url(kind)
            unused = ("command", "args", "env", "cwd")
        else:
            raise UnusableEntry("it has neither a command nor a url")
        for key in unused:
            for name in _NAMES[key]:
                self._leave_out(name, "it is for a url" if is_command else "it is for a command")

    def _take_command(self) -> None:
        command = self._take("command")
        if (old := as_object(command)) is not None:
            # Zed's older form.
            command = old.get("path", old.get("command"))
            self._open("command", {key: old[key] for key in old if key not in {"path", "command"}})
        words = [command] if isinstance(command, str) else as_list(command)
        if not words or not all(isinstance(word, str) for word in words) or not words[0].strip():
            raise UnusableEntry("its command is not a text")
        args = self._arguments(self._take("args"))
        if len(words) == 1 and not args and _COMMAND_LINE.match(words[0]):
            # Cursor runs it so.
            words = _split(words[0])
        texts = [self._text(word) for word in [*words, *args]]
        self.entry["command"] = texts[0]
        if texts[1:]:
            self.entry["args"] = texts[1:]
        if env := self._environment():
            self.entry["env"] = env
        if isinstance(cwd := self._take("cwd"), str) and cwd.strip():
            self.entry["cwd"] = self._text(cwd)
        elif cwd is not None:
            self._drop("cwd", "it is not a text")

    def _open(self, outer: str, inner: Mapping[str, Any]) -> None:
        """Treat what stands in an object of the entry as if it stood in the entry itself."""
        for key, value in inner.items():
            if key in self.raw:
                self._drop(f"{outer}.{key}", f"{key} of the entry itself is used")
            else:
                self.raw[key] = value
                self.unread[key] = None

    def _arguments(self, given: Any) -> list[Any]:
        if given is None:
            return []
        if isinstance(given, str):
            return _split(given)
        items = as_list(given)
        if items is None or any(isinstance(item, (dict, list)) or item is None for item in items):
            raise UnusableEntry("its args are not a list of texts")
        return [_scalar(item) for item in items]

    def _environment(self) -> dict[str, str]:
        env = self._texts("env", self._take("env"))
        for key in ("env_vars", "env_keys"):
            for name in self._names(key):
                env.setdefault(name, f"${{{name}}}")
        return env

    def _names(self, key: str) -> list[str]:
        """The names of variables that a list has, each a text or an object with a name."""
        items = as_list(self._pop(key)) or []
        names = [(as_object(item) or {}).get("name", item) for item in items]
        for name in names:
            if not isinstance(name, str):
                self._drop(key, "it is not a list of names")
        return [name for name in names if isinstance(name, str)]

    def _take_url(self, kind: str | None) -> None:
        source = self._source("url")
        url = self._take("url")
        if not isinstance(url, str) or not url.strip():
            raise UnusableEntry("its url is not a text")
        kind = "http" if kind is None and source == "httpUrl" else kind
        if kind in {"http", "sse"}:
            self.entry["type"] = kind
        self.entry["url"] = self._text(url.strip())
        if headers := self._headers():
            self.entry["headers"] = headers

    def _headers(self) -> dict[str, str]:
        options = as_object(self._pop("requestOptions"))
        headers = self._texts("requestOptions.headers", (options or {}).get("headers"))
        for key in options or {}:
            if key != "headers":
                self._drop(f"requestOptions.{key}", _UNKNOWN)
        headers |= self._texts("headers", self._take("headers"))
        for name, variable in self._texts("env_http_headers", self._pop("env_http_headers")).items():
            headers[name] = f"${{{variable}}}"
        has_token = any(name.lower() == "authorization" for name in headers)
        for key in ("bearer_token_env_var", "bearer_token", "authorization_token"):
            token = self._pop(key)
            if not isinstance(token, str) or has_token:
                if token is not None:
                    self._drop(key, "there is an Authorization header" if has_token else "it is not a text")
                continue
            headers["Authorization"] = f"Bearer ${{{token}}}" if key.endswith("env_var") else f"Bearer {token}"
            has_token = True
        return headers

    def _take_sign_in(self) -> None:
        """The `oauth` section, in whatever words; one of a command has nothing to sign in to."""
        if "url" not in self.entry:
            for key in sorted(OAUTH_ENTRY_KEYS):
                self._leave_out(key, "it is for a url")
            return
        oauth = own_oauth(self.raw)
        if oauth is None:
            return
        for key in OAUTH_ENTRY_KEYS:
            self._pop(key)
        if oauth is False:
            self.entry["oauth"] = False
            return
        for key, value in list(oauth.items()):
            if key not in OAUTH_KEYS or not _is_json(value):
                del oauth[key]
                self._drop(f"oauth.{key}", _UNKNOWN)
        if oauth:
            self.entry["oauth"] = self._translate_texts(oauth)

    def _translate_texts(self, value: Any) -> Any:
        """A value, the variables of its texts as Pegboard writes them."""
        if isinstance(value, str):
            return self._text(value)
        if (items := as_list(value)) is not None:
            return [self._translate_texts(item) for item in items]
        if (members := as_object(value)) is not None:
            return {key: self._translate_texts(each) for key, each in members.items()}
        return value

    def _take_switches(self) -> None:
        enabled, disabled = self._pop("enabled"), self._pop("disabled")
        for key, value in (("enabled", enabled), ("disabled", disabled)):
            if value is not None and not isinstance(value, bool):
                self._drop(key, "it is not true or false")
        if enabled is False or (disabled is True and enabled is not True):
            self.entry["enabled"] = False

    def _take_times(self) -> None:
        to_reach = "startTimeout" if "command" in self.entry else "connectTimeout"
        self._take_time("timeout", to_reach if self.variables.dialect.times_start else "timeout", None)
        self._take_time("connectionTimeout", to_reach, 0.001)
        self._take_time("startup_timeout_sec", to_reach, 1)
        self._take_time("startup_timeout_ms", to_reach, 0.001)
        self._take_time("tool_timeout_sec", "timeout", 1)

    def _take_time(self, key: str, ours: str, factor: float | None) -> None:
        value = self._pop(key)
        if value is None:
            return
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < _ENDLESS:
            self._drop(key, "it is not a length of time")
            return
        seconds = self.variables.dialect.seconds(value) if factor is None else value * factor
        if factor is None and self.variables.dialect.unit == "guess" and seconds != value:
            self.variables.notes[f"{key} is taken as {value:g} milliseconds"] = None
        if not 0.001 <= seconds <= 10_000_000:
            self._drop(key, "it is not a useful length of time")
        elif ours in self.entry:
            self._drop(key, f"{ours} is given already")
        else:
            self.entry[ours] = int(seconds) if seconds == int(seconds) else round(seconds, 3)

    def _take_tools(self) -> None:
        patterns = {key: self._patterns(key) for key in ("allow", "deny")}
        tools = self._pop("tools")
        own = as_object(tools)
        if own is not None and own.keys() <= {"allow", "deny"}:
            patterns = {key: [*patterns[key], *self._list(f"tools.{key}", own.get(key))] for key in patterns}
        elif (items := as_list(tools)) is not None and items != ["*"]:
            patterns["allow"] += self._list("tools", items or None) or []
            if not items:
                self._drop("tools", "an empty list means nothing here")
        elif tools is not None and items is None and tools != "*":
            self._drop("tools", _UNKNOWN)
        if kept := {key: value for key, value in patterns.items() if value}:
            self.entry["tools"] = kept

    def _patterns(self, key: str) -> list[str]:
        source = self._source(key) or key
        return self._list(source, self._take(key))

    def _list(self, key: str, value: Any) -> list[str]:
        if value is None:
            return []
        items = as_list(value)
        if items is None or not all(isinstance(item, str) for item in items):
            self._drop(key, "it is not a list of texts")
            return []
        return [*cast("list[str]", items)]

    def _take_rest(self) -> None:
        for key in list(self.unread):
            value = self._pop(key)
            if key in _OWN_ONLY:
                self._drop(key, _OWN_ONLY[key])
            elif key in KEYS and key not in self.entry and value is not None and _is_json(value):
                # A key of Pegboard's own: whoever reads the config judges it.
                self.entry[key] = value
            else:
                self._drop(key, _REASONS.get(key, _OPTION if key.startswith("-") else _UNKNOWN))

    def _source(self, key: str) -> str | None:
        """Which of the names of a key is there."""
        names = _NAMES[key]
        first = self.variables.dialect.url_first
        ordered = (first, *names) if key == "url" else names
        return next((name for name in ordered if self.raw.get(name) is not None), None)

    def _take(self, key: str) -> Any:
        """The value under the first of a key's names; the other names are left out."""
        source = self._source(key)
        for name in _NAMES[key]:
            if name == source or name not in self.unread:
                continue
            value = self._pop(name)
            if value is not None and value != self.raw.get(source or ""):
                self._drop(name, f"{source} is used")
        return None if source is None else self._pop(source)

    def _pop(self, key: str) -> Any:
        self.unread.pop(key, None)
        return self.raw.get(key)

    def _leave_out(self, key: str, reason: str) -> None:
        if key in self.unread:
            self._pop(key)
            self._drop(key, reason)

    def _drop(self, key: str, reason: str) -> None:
        self.left_out.append(LeftOut(key, reason))

    def _texts(self, key: str, given: Any) -> dict[str, str]:
        """An object of texts; numbers and booleans are taken as their text, as clients do."""
        if given is None:
            return {}
        items = as_list(given)
        if items is not None and all(isinstance(item, str) and "=" in item for item in items):
            given = dict(item.split("=", 1) for item in items)
        members = as_object(given)
        if members is None:
            self._drop(key, "it is not an object of texts")
            return {}
        for name, value in members.items():
            if isinstance(value, (dict, list)) or value is None:
                self._drop(f"{key}.{name}", "it is not a text")
        kept = {name: value for name, value in members.items() if not isinstance(value, (dict, list, type(None)))}
        return {name: self._text(_scalar(value)) for name, value in kept.items()}

    def _text(self, text: str) -> str:
        return self.variables.translate(text)


def _check_size(entry: Mapping[str, Any]) -> None:
    texts = [entry.get(key, "") for key in ("command", "cwd", "url")]
    for key in ("args", "env", "headers"):
        members = entry.get(key, ())
        if len(members) > _MOST_MEMBERS:
            raise UnusableEntry(f"its {key} are {len(members):,}, {_MOST_MEMBERS:,} are the most")
        texts += [*members, *(members.values() if isinstance(members, dict) else ())]
    if sum(map(len, texts)) > _MOST_CHARACTERS:
        raise UnusableEntry(f"it has more than {_MOST_CHARACTERS:,} characters")


def _split(text: str) -> list[str]:
    try:
        return split_words(text)
    except UnreadableText as exc:
        raise UnusableEntry(exc.reason) from None


def _is_json(value: Any) -> bool:
    """Whether JSON can hold it: TOML and YAML have dates, and numbers that are none."""
    if isinstance(value, float):
        return math.isfinite(value)
    if (items := as_list(value)) is not None:
        return all(map(_is_json, items))
    if (members := as_object(value)) is not None:
        return all(map(_is_json, members.values()))
    return isinstance(value, str) or value is None or (isinstance(value, int) and abs(value) < _ENDLESS)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value)
    except ValueError:
        # A whole number of more digits than Python writes.
        raise UnusableEntry("it has a number with too many digits") from None
