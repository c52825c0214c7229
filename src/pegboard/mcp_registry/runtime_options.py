"""Options of `npx`, `uvx`, `docker` and `dnx` that a publisher may choose, and what each lets a server do.

Only options that are known here are let through. Behind an option that takes no value, the next word would be the
package: `npx --quiet other-package the-package` runs the other one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pegboard.config.entry_effects import STEERING
from pegboard.mcp_registry.recipe import CannotRun

_FOLDERS = "it can read and write folders of this machine"
_OPEN = "it is less separated from this machine"
_NETWORK = "it can use the network of this machine, and what listens on it"
_PACKAGES = "it installs further packages"
_INDEX = "its packages come from another index"
_FILE = "it gets all variables of a file"

# Options that take a value. Of those with a text, whoever decides should know it.
_WITH_VALUE: Mapping[str, Mapping[str, str]] = {
    "docker": {
        **dict.fromkeys(("-v", "--volume", "--mount", "--volumes-from"), _FOLDERS),
        **dict.fromkeys(("--cap-add", "--security-opt", "--userns"), _OPEN),
        **dict.fromkeys(("--network", "--net"), _NETWORK),
        **dict.fromkeys(("--device", "--gpus"), "it can use devices of this machine"),
        **dict.fromkeys(("--pid", "--ipc"), "it can reach the processes of this machine"),
        **dict.fromkeys(("-u", "--user", "--group-add"), "it runs as another user of the image"),
        **dict.fromkeys(("-p", "--publish"), "it can be reached from outside of its container"),
        **dict.fromkeys(("-e", "--env", "--name", "-h", "--hostname", "-w", "--workdir", "--add-host", "--dns"), ""),
        **dict.fromkeys(("-m", "--memory", "--cpus", "--platform", "-l", "--label", "--tmpfs", "--shm-size"), ""),
        **dict.fromkeys(("--ulimit", "--pull", "--cap-drop", "--log-driver", "--stop-timeout"), ""),
        "--env-file": _FILE,
        "--entrypoint": "it runs another program of the image",
    },
    "npx": {
        **dict.fromkeys(("--cache", "--loglevel"), ""),
        "--registry": _INDEX,
        "--node-options": "it changes how Node starts",
    },
    "uvx": {
        **dict.fromkeys(("--with", "--with-editable", "--with-requirements"), _PACKAGES),
        **dict.fromkeys(("--index", "--default-index", "-i", "--index-url", "--extra-index-url"), _INDEX),
        **dict.fromkeys(("-f", "--find-links"), _INDEX),
        **dict.fromkeys(("-p", "--python", "--prerelease", "--resolution", "--exclude-newer", "--link-mode"), ""),
        "--env-file": _FILE,
    },
    "dnx": {
        **dict.fromkeys(("--source", "--add-source", "--configfile"), _INDEX),
        **dict.fromkeys(("--framework", "--verbosity"), ""),
    },
}
_SWITCHES: Mapping[str, Mapping[str, str]] = {
    "docker": {
        **dict.fromkeys(("-t", "--tty", "-it", "-ti", "--init", "--read-only", "-q", "--quiet"), ""),
        "--privileged": "it is not separated from this machine",
        "-P": "it can be reached from outside of its container",
    },
    "npx": {
        **dict.fromkeys(("-q", "--quiet", "-s", "--silent", "--ignore-scripts"), ""),
        **dict.fromkeys(("--prefer-offline", "--prefer-online", "--offline"), ""),
    },
    "uvx": {
        **dict.fromkeys(("--isolated", "--refresh", "-n", "--no-cache", "--native-tls", "--offline", "-q"), ""),
        **dict.fromkeys(("--quiet", "--no-progress", "--no-config", "--managed-python", "--no-env-file"), ""),
    },
    "dnx": dict.fromkeys(("--prerelease", "--allow-roll-forward", "--ignore-failed-sources"), ""),
}


def option_warnings(program: str, words: Sequence[str]) -> Iterator[str]:
    """What to know before a yes to these options of a program; raises `CannotRun` for what is none of them."""
    waiting = iter(words)
    for word in waiting:
        option, equals, _ = word.partition("=")
        if word in _SWITCHES[program]:
            means, shown = _SWITCHES[program][word], word
        elif option in _WITH_VALUE[program]:
            means, shown = _WITH_VALUE[program][option], word if equals else f"{word} {_value(program, word, waiting)}"
        else:
            raise CannotRun(f"it asks {program} for {word[:80]!r}, which is not an option that Pegboard lets through")
        if means:
            yield f"{shown}: {means}"


def variable_warnings(program: str, names: Iterable[str]) -> Iterator[str]:
    """What to know before a yes to variables of these names."""
    for name in names:
        if STEERING.fullmatch(name):
            yield f"it sets {name}, which changes how {program} itself works"


def _value(program: str, option: str, waiting: Iterator[str]) -> str:
    value = next(waiting, "")
    if not value or value.startswith("-"):
        raise CannotRun(f"it gives no value to the option {option} of {program}")
    return value
