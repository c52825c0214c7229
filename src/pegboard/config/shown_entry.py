"""Somebody's entry as a page or a program is shown it before it is taken over: in doubt a value is hidden, as in
`hidden_values`, but for what would run, which is read as in `masking`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pegboard.config.aliases import with_own_keys
from pegboard.config.entry_effects import STEERING
from pegboard.config.hidden_values import VARIABLE_OPTIONS, hide_args, hide_variable
from pegboard.config.literal_secrets import mask_entry
from pegboard.config.masking import find_run_words, is_program_name, mask_script
from pegboard.config.secrets import is_credential
from pegboard.exactjson import as_list, as_object
from pegboard.log import REDACTED

# A program that asks for a password, and the name of a setting.
_NO_CREDENTIAL = re.compile(r"\w+_ASKPASS|GIT_CONFIG_KEY_\d+")


def show_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The entry with the names of its variables and headers, and nothing behind them that may be secret."""
    own = with_own_keys(entry)
    shown = mask_entry(own)
    if members := as_object(own.get("env")):
        shown["env"] = {name: _show_variable(name, value) for name, value in members.items()}
    if members := as_object(own.get("headers")):
        values = as_object(shown["headers"]) or {}
        shown["headers"] = {name: value if isinstance(value, str) else REDACTED for name, value in values.items()}
    command, args = own.get("command"), as_list(own.get("args"))
    if isinstance(command, str):
        shown["command"] = mask_script(command)
    if args and all(isinstance(arg, str) for arg in args):
        shown["args"] = _show_args(command if isinstance(command, str) else "", args, shown["args"])
    elif args:
        shown["args"] = hide_args(command, args)
    return shown


def _show_variable(name: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value if value is None or isinstance(value, (bool, int, float)) else REDACTED
    hidden = hide_variable(name, value)
    return mask_script(value) if hidden != value and _is_read(name, value) else hidden


def _is_read(name: str, value: str) -> bool:
    """Whether it changes how programs start, so that whoever agrees to it reads it."""
    is_secret = is_credential(name) and _NO_CREDENTIAL.fullmatch(name) is None
    return STEERING.fullmatch(name) is not None and not is_secret and not value.lstrip().startswith(("{", "["))


def _show_args(command: str, args: list[str], careful: list[str]) -> list[Any]:
    hidden = hide_args(command, args)
    may_run = find_run_words(command, args)
    shown: list[Any] = []
    for at, arg in enumerate(args):
        option = args[at - 1] if at else ""
        name = arg.partition("=")[0] if "=" in arg else option
        if option in VARIABLE_OPTIONS:
            shown.append(hidden[at])
        elif may_run[at] or is_program_name(name):
            shown.append(mask_script(arg) if careful[at] == arg else careful[at])
        else:
            shown.append(hidden[at])
    return shown
