"""Redaction: which values of arguments are never kept, by what they are called and by where they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, cast

from pegboard.log import REDACTED
from pegboard.secret_forms import redact_text

# Names of members that hold secrets, without their case and what stands between their words.
_SECRET = re.compile(
    r"password|passwd|passphrase|passcode|pwd|token|secret|authorization|api_?key|access_?key|private_?key|credential"
    r"|cookie|bearer|session_?(id|key)|jwt|client_?key|encryption_?key|ssh_?key|(^|_)(pass|pw|auth|otp|pin)$|^key$"
)
_WORD_ENDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-. ]")


class Redaction:
    """Takes the values out that the list of usual names or the config's JSON pointers name."""

    def __init__(self, pointers: Mapping[str, tuple[str, ...]]) -> None:
        self._pointers = {tool: [_steps(each) for each in named] for tool, named in pointers.items()}

    def clean(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a tool without what is secret."""
        chosen = [steps for pattern, named in self._pointers.items() if fnmatchcase(tool, pattern) for steps in named]
        return cast("dict[str, Any]", _clean(arguments, chosen))


def is_secret_name(name: str) -> bool:
    """Whether what is called so is likely to be a secret."""
    return _SECRET.search(_WORD_ENDS.sub("_", name).lower()) is not None


def _clean(value: Any, pointers: list[tuple[str, ...]]) -> Any:
    if () in pointers:
        return REDACTED
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {
            name: REDACTED if is_secret_name(name) else _clean(each, _below(pointers, name))
            for name, each in members.items()
        }
    if isinstance(value, list):
        return [_clean(each, _below(pointers, str(at))) for at, each in enumerate(cast("list[Any]", value))]
    return redact_text(value) if isinstance(value, str) else value


def _below(pointers: list[tuple[str, ...]], name: str) -> list[tuple[str, ...]]:
    """What of the pointers is left one step below; a `*` is any name."""
    return [steps[1:] for steps in pointers if steps and steps[0] in {name, "*"}]


def _steps(pointer: str) -> tuple[str, ...]:
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:])
