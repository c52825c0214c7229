"""Which values of an entry may be hidden from whoever decides about it: those that can be nothing but a secret.

The entry may be somebody else's text, and what is hidden in it could be the command. So in doubt a value is shown: only
a whole word, or the value in a header or an address, is hidden, and only where nothing would run it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pegboard.config.oauth_spellings import OAUTH_SECRETS
from pegboard.config.secrets import hide_in_address
from pegboard.exactjson import as_object
from pegboard.log import REDACTED
from pegboard.secret_forms import redact_text

_VARIABLE = re.compile(r"(\$?\$\{[^{}]*\})")
# Names that end like this are names of secrets, unless something in them says that they are about a program.
_SECRET_NAME = re.compile(
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|APIKEY"
    r"|(?<![A-Z0-9])(?:KEY|PASS|PWD|PAT|JWT|COOKIE|CREDENTIAL|AUTH|AUTHORIZATION))S?(?:_?V?[0-9]+)?\Z",
    re.IGNORECASE,
)
_PROGRAM_NAME = re.compile(
    r"ASKPASS|COMMAND|CMD|PROGRAM|HOOK|BACKEND|LIB|PRELOAD|CONFIG|OPTION|OPTS|HELPER|PROVIDER|PLUGIN|MODULE|SCRIPT|SHELL|EXEC",
    re.IGNORECASE,
)
_NAME = re.compile(r"-{0,2}[A-Za-z][\w.-]{0,100}")
# No path, no option, and nothing that a shell would take apart; or what is too long and too mixed for a path.
_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.~+=:!#*,-]*")
_RANDOM = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=.*[0-9])[A-Za-z0-9][A-Za-z0-9+/]{38,}={0,2}")
_HEADER = re.compile(r"([A-Za-z0-9-]+:[ ]*(?:(?:Bearer|Basic|Token)[ ]+)?)([A-Za-z0-9_.~+/=:-]+)", re.IGNORECASE)
# In a script: a name, what stands behind it, and a value of signs that mean nothing to a shell.
_SCRIPT_VALUE = re.compile(
    r"(?<![\w.-])(-{0,2}[A-Za-z_][\w-]{0,100})(=[\"']?|[ ]{1,4}[\"']?)(?![-./~])([\w.~+/:@%!#,=-]+)"
)
_SCHEMES = frozenset({"", "bearer", "basic", "token"})
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}+://(?:[^\s\"'<>`|;$()\\]|\$\{\w+\})+")
_USER = re.compile(r"(?<=://)(?!\$)[\w.~+=:%!*-]+(?=@)")
_FIELD = re.compile(r"(?<=[?&])([\w.-]+)=([\w.~+=%-]+)")
# Headers that say how to talk, and nothing secret.
PLAIN_HEADERS = frozenset({"accept", "content-type", "user-agent", "accept-language", "mcp-protocol-version"})

# Behind these stands a script.
_SCRIPT_OPTION = re.compile(r"-[A-Za-z]*[cepr]|--(?:eval|print|command|exec|require|import)|-+[Cc]ommand|/[cCkK]")
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
# They run what stands behind their own options, whatever those are.
_WRAPPERS = frozenset(
    {"sh", "bash", "zsh", "dash", "ksh", "fish", "cmd", "pwsh", "powershell", "wsl", "env", "xargs"}
) | {
    *("sudo", "doas", "su", "nice", "nohup", "timeout", "time", "setsid", "stdbuf", "script", "ssh", "busybox", "watch")
}
# Programs that run a package, an image or a file, and which of their options have no value.
_JAVASCRIPT = frozenset({"-y", "--yes", "-q", "--quiet", "-s", "--silent", "--prefer-offline", "--"})
_SWITCHES: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("npx", "bunx", "pnpx", "npm", "pnpm", "yarn", "bun"), _JAVASCRIPT),
    **dict.fromkeys(("uvx", "uv", "pipx"), frozenset({"-q", "--quiet", "--isolated", "--refresh", "--offline"})),
    **dict.fromkeys(_CONTAINERS, frozenset({"-i", "-t", "-it", "-ti", "--interactive", "--tty", "--rm", "--init"})),
    **dict.fromkeys(("node", "tsx", "ts-node", "ruby", "perl", "php", "java", "dotnet", "dnx", "go"), frozenset[str]()),
    "deno": frozenset({"-A", "--allow-all", "-q", "--quiet"}),
    "python": frozenset({"-u", "-m", "-I", "-B", "-E", "-s"}),
}
_OWN_WORDS = frozenset({"run", "exec", "dlx", "x", "tool", "container", "create", "start", "compose"})


def mask_words(command: str, args: Sequence[str]) -> list[str]:
    """The arguments of a command, without the values of options and variables that are secrets."""
    program = _program(command)
    first = _first_own(program, args)
    shown: list[str] = []
    for at, arg in enumerate(args):
        before = args[at - 1] if at else ""
        is_script = program not in _CONTAINERS and _SCRIPT_OPTION.fullmatch(before) is not None
        shown.append(arg if is_script else _mask_word(arg, before if at > first else ""))
    return shown


def find_run_words(command: str, args: Sequence[str]) -> list[bool]:
    """Which arguments may be what is run: scripts, and the words among which a runner has its package."""
    program = _program(command)
    first = _first_own(program, args)
    before = ["", *args]
    return [at <= first or _SCRIPT_OPTION.fullmatch(before[at]) is not None for at in range(len(args))]


def is_program_name(name: str) -> bool:
    """Whether what has this name may be run."""
    return _PROGRAM_NAME.search(name) is not None


def mask_script(text: str) -> str:
    """A script without what is a secret by its form, or stands behind the name of one. Only a word is hidden in which a
    shell finds nothing to do."""
    text = _SCRIPT_VALUE.sub(_mask_in_script, _ADDRESS.sub(lambda found: _mask_address(found.group()), text))
    return redact_text(text)


def _mask_in_script(found: re.Match[str]) -> str:
    name, value = found[1], found[3]
    is_secret = is_secret_name(name) and value != REDACTED and shutil.which(value) is None
    return f"{name}{found[2]}{REDACTED}" if is_secret else found.group()


def mask_variable(name: str, value: str) -> str:
    """The value of a variable that a server is given, without what is a secret in it."""
    masked = _mask_address(value)
    if masked != value or not is_secret_name(name):
        return masked
    return _mask_literals(value, lambda part: part if part and not _is_token(part) else REDACTED)


def mask_header(name: str, value: str) -> str:
    """The value of a header: what is not a variable is hidden, since nothing runs it."""
    if name.lower() in PLAIN_HEADERS:
        return value
    return _mask_literals(value, lambda part: part if part.strip().lower() in _SCHEMES else REDACTED)


def mask_sign_in(key: str, value: Any) -> Any:
    """The value of a key of the `oauth` section: of a secret, what is not a variable is hidden."""
    if key == "params" and (params := as_object(value)) is not None:
        return {name: mask_variable(name, each) if isinstance(each, str) else each for name, each in params.items()}
    if key not in OAUTH_SECRETS or not isinstance(value, str):
        return value
    return _mask_literals(value, lambda _: REDACTED)


def mask_url(url: str) -> str:
    """The address of a server without its secrets; variables and the host are shown."""
    return hide_in_address(url, lambda part: _mask_literals(part, lambda _: REDACTED))


def _mask_word(word: str, option: str) -> str:
    name, equals, value = word.partition("=")
    if equals and is_secret_name(name):
        return f"{name}={_mask_token(value)}"
    if option in {"-H", "--header"} and (header := _HEADER.fullmatch(word)):
        return f"{header[1]}{REDACTED}"
    if option.startswith("-") and is_secret_name(option) and (masked := _mask_token(word)) != word:
        return masked
    return _mask_address(word)


def _mask_token(text: str) -> str:
    """The whole text hidden, if it is a token, or the token that stands for a variable without a value."""
    if _is_token(text):
        return REDACTED
    is_variable = _VARIABLE.fullmatch(text) is not None
    return _mask_default(text, lambda part: REDACTED if _is_token(part) else part) if is_variable else text


def _mask_literals(value: str, mask: Callable[[str], str]) -> str:
    """The value with its variables as they are, and what is between them and their defaults masked."""
    parts = _VARIABLE.split(value)
    return "".join(_mask_default(part, mask) if at % 2 else part and mask(part) for at, part in enumerate(parts))


def _mask_default(variable: str, mask: Callable[[str], str]) -> str:
    name, has_default, default = variable.removesuffix("}").partition(":-")
    return f"{name}:-{mask(default)}}}" if has_default and default else variable


def _mask_address(text: str) -> str:
    if _ADDRESS.fullmatch(text) is None:
        return text
    text = _USER.sub(REDACTED, text)
    return _FIELD.sub(lambda field: f"{field[1]}={REDACTED}" if is_secret_name(field[1]) else field.group(), text)


def is_secret_name(name: str) -> bool:
    """Whether what has this name is a secret, and surely nothing that is run."""
    return bool(_NAME.fullmatch(name) and _SECRET_NAME.search(name) and not _PROGRAM_NAME.search(name))


def is_switch(command: str, option: str) -> bool:
    """Whether an option of a program that runs others has no value."""
    return option in _SWITCHES.get(_program(command), ())


def _is_token(text: str) -> bool:
    """Whether a text is no path, no option, no program, and nothing that a shell would take apart."""
    if _RANDOM.fullmatch(text):
        return True
    return _TOKEN.fullmatch(text) is not None and shutil.which(text) is None


def _program(command: str) -> str:
    name = re.split(r"[/\\]", command)[-1].lower()
    for suffix in (".exe", ".cmd", ".bat"):
        name = name.removesuffix(suffix)
    # python3.12
    return name.rstrip("0123456789.")


def _first_own(program: str, args: Sequence[str]) -> int:
    """Behind which argument all are surely those of the server: the package that a runner runs is among the words
    before it, and must be seen."""
    if (
        program == "cmd"
        and (at := next((at for at, arg in enumerate(args) if not arg.startswith("/")), None)) is not None
    ):
        # What stands behind `cmd /c` is a command with its arguments.
        return at + 1 + _first_own(_program(args[at]), args[at + 1 :])
    if program in _WRAPPERS:
        return len(args)
    switches = _SWITCHES.get(program)
    if switches is None:
        return -1
    for at, arg in enumerate(args):
        before = args[at - 1] if at else ""
        is_value = before.startswith("-") and before not in switches and "=" not in before
        if not arg.startswith("-") and not is_value and arg not in _OWN_WORDS:
            return at
    return len(args)
