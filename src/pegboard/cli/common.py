"""What all commands share: where the config is, how answers are printed, and how a command ends."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from pegboard.cli.program import names_command, use_config, with_program
from pegboard.cli.show import say, say_wrapped
from pegboard.cli.wording import for_people
from pegboard.terminal import plain_data, plain_json

if TYPE_CHECKING:
    from pegboard.config import Location, Settings

FAILED, WRONG_CALL, BAD_CONFIG, UNREACHED = 1, 2, 3, 4

ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="The config file.", show_default=False, dir_okay=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]

_LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
_EXIT = {
    "TOOL_UNAVAILABLE": UNREACHED,
    "RATE_LIMITED": UNREACHED,
    "TOOL_INVALID_INPUT": WRONG_CALL,
    "TOOL_NOT_FOUND": WRONG_CALL,
}


def find_config(given: Path | None) -> Location:
    """The config file that a command works with."""
    from pegboard.config import locate

    location = locate(given)
    use_config(location)
    if location.remark is not None:
        say(f"note: {with_program(location.remark)}", error=True)
    named = "" if given is not None else " (PEGBOARD_CONFIG names it)" if os.environ.get("PEGBOARD_CONFIG") else None
    if named is not None and not location.exists:
        stop(f"{location.path}: there is no such file{named}", BAD_CONFIG)
    return location


def load_settings(location: Location) -> Settings:
    """The settings, or the end with exit code 3 and the reason."""
    from pegboard.config import ConfigError, read_settings

    try:
        path = location.path if location.exists else None
        return read_settings(path, os.environ, needs_trust=location.needs_trust)
    except ConfigError as exc:
        stop(str(exc), BAD_CONFIG)


def quiet_logs() -> None:
    """What goes wrong is in a command's answer; its log is silent unless `PEGBOARD_LOG` says otherwise."""
    from pegboard.log import configure

    configure(log_level("critical"))


def log_level(usual: str) -> str:
    """The level of `PEGBOARD_LOG`, or the usual one; a level that there is not ends with exit code 2."""
    level = os.environ.get("PEGBOARD_LOG") or usual
    if level.lower() not in _LOG_LEVELS:
        stop(f"PEGBOARD_LOG must be one of {', '.join(_LOG_LEVELS)}, found {level!r}", WRONG_CALL)
    return level


def check_servers(names: Iterable[str], known: Collection[str]) -> None:
    """End with exit code 2 at the first name that no server has."""
    from pegboard.names import nearest

    for name in names:
        if name not in known:
            close = nearest(name, known, limit=1)
            stop(f"there is no server {name!r}{f': did you mean {close[0]}?' if close else ''}", WRONG_CALL)


def json_argument(text: str, what: str, advice: str = "") -> Any:
    """The value of a JSON text that a person typed."""
    from pegboard.exactjson import NotJson, parse

    try:
        return parse(text)
    except NotJson as exc:
        reason = f"{advice} ({exc})" if advice else str(exc)
        stop(f"{what} cannot be read as JSON: {reason}", WRONG_CALL)


def text_of_input() -> str:
    """What is piped into a command, or typed where it is asked for."""
    if sys.stdin.isatty():
        say(f"Paste the text, then press {'Ctrl-Z and Enter' if os.name == 'nt' else 'Ctrl-D'}.", error=True)
    try:
        # Decoded here: where the locale says so, Python lets bytes pass that are no text.
        text = sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as exc:
        stop(f"the input is not UTF-8: {exc.reason} at byte {exc.start}", WRONG_CALL)
    return text.replace("\r\n", "\n")


def json_text(data: Any) -> str:
    """JSON as people read it: exact, with escapes for what would steer a terminal or what the output cannot write."""
    from pegboard import exactjson

    writes_all = (sys.stdout.encoding or "utf-8").lower().startswith("utf")
    return plain_json(exactjson.dump(data, indent=2, ascii_only=not writes_all).decode())


def without_name(message: str, server: str) -> str:
    """What is said of a server, for a place that has its name already."""
    return message.removeprefix("server ").removeprefix(f"{server} ").removeprefix(f"{server}: ")


def short_place(message: str, config: Path) -> str:
    """What is said of a place in the config file, for whoever knows which file that is."""
    return re.sub(rf"{re.escape(str(config))}:(\d+):\d+: ", r"line \1: ", message)


def stop(message: str, code: int) -> NoReturn:
    """End with a message for a person."""
    for line in f"pegboard: {message}".split("\n"):
        # A command to copy, or a detail below its line, has no breaks of ours.
        is_kept = line.startswith(" ") or names_command(line)
        (say if is_kept else say_wrapped)(with_program(line), error=True)
    raise typer.Exit(code)


def exit_code_of_refusal(answer: Mapping[str, Any]) -> int | None:
    """The exit code of a command to which somebody who was reached said no; `None`: the usual one."""
    error: Mapping[str, Any] = answer.get("error") or {}
    if error.get("code") != "TOOL_UNAVAILABLE" or error.get("retryable"):
        return None
    return BAD_CONFIG if "PEGBOARD_SECRET_KEY" in error["message"] else FAILED


def finish(answer: Mapping[str, Any], *, as_json: bool, show: Callable[[Any], None], failed: int | None = None) -> None:
    """Print an answer and end with the exit code that fits it, or with the one that a failure is to have. Whoever wrote
    its texts, `show` gets them plain."""
    error = answer.get("error")
    if as_json:
        print(json_text(answer))
    elif error is None:
        show(plain_data(answer.get("data")))
    else:
        # A command that somebody may copy has no breaks of ours.
        write = say if names_command(error["message"]) else say_wrapped
        write(f"pegboard: {for_people(error['message'])}", error=True)
    if error is not None:
        raise typer.Exit(_EXIT.get(error["code"], FAILED) if failed is None else failed)
