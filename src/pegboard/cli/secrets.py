"""`secrets …`: the key that seals what is kept of sign-ins, and its change."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from pegboard.cli.common import FAILED, ConfigOption, JsonOption, find_config, finish, load_settings, quiet_logs, stop
from pegboard.cli.program import with_program
from pegboard.cli.show import TerminalTable, say, say_wrapped

if TYPE_CHECKING:
    from pathlib import Path

    from pegboard.sealing.key_search import KeyChain
    from pegboard.sealing.rotation import Inventory
    from pegboard.storage.oauth import OAuthStore, SealedRow

T = TypeVar("T")
_VARIABLE = "PEGBOARD_SECRET_KEY"
_KINDS = {"oauth_clients": "registration at", "oauth_grants": "sign-in to", "oauth_flows": "unfinished sign-in to"}


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(invoke_without_command=True, help="The key that seals what is stored of sign-ins to servers.")
    group.callback()(secrets)
    group.command(short_help="Change the key, and seal every secret anew.")(rotate)
    group.command(short_help="Print a new key, for the environment of gateways.")(key)
    app.add_typer(group, name="secrets")


def secrets(context: typer.Context, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show where the key comes from that seals sign-ins, and how many secrets are sealed with which key.

    Example: pegboard secrets
    """
    if context.invoked_subcommand is not None:
        return
    source, problem = _find_source(config)

    async def ask(store: OAuthStore) -> Inventory:
        from pegboard.sealing.rotation import open_known_sealer, take_inventory

        return await take_inventory(None if source is None else open_known_sealer(source), store)

    data = _inventory_data(_with_store(config, ask, as_json=as_json), source, problem)
    finish({"success": True, "data": data}, as_json=as_json, show=_show_inventory)
    if problem is not None:
        raise typer.Exit(FAILED)


def rotate(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Make another key and seal every secret anew with it, while gateways run.

    A key from the environment is yours to change: the command says what to set, and then seals everything anew.

    Example: pegboard secrets rotate
    """
    source, problem = _find_source(config)
    if source is None:
        _end(problem or "", as_json=as_json)

    async def turn(store: OAuthStore) -> dict[str, Any] | None:
        from pegboard.sealing.key_file import KeyFile
        from pegboard.sealing.rotation import open_known_sealer, rotate_key, take_inventory

        if not isinstance(source.first, KeyFile):
            before = await take_inventory(open_known_sealer(source), store)
            if not before.needs_reseal and len(before.keys) == 1:
                return None
        done = await rotate_key(source, store)
        after = _inventory_data(await take_inventory(open_known_sealer(source), store), source, None)
        return {"resealed": done.resealed, **after}

    data = _with_store(config, turn, as_json=as_json)
    if data is None:
        _end(_how_to_change(source.place), as_json=as_json)
    finish({"success": True, "data": data}, as_json=as_json, show=_show_rotation)
    if data["unreadable"]:
        raise typer.Exit(FAILED)


def _end(problem: str, *, as_json: bool) -> NoReturn:
    """End with exit code 1 and what is in the way."""
    if as_json:
        error = {"code": "TOOL_UNAVAILABLE", "message": problem, "retryable": False}
        finish({"success": False, "error": error}, as_json=True, show=lambda _: None, failed=FAILED)
    stop(problem, FAILED)


def key() -> None:
    """Print a new key, for PEGBOARD_SECRET_KEY or the file that PEGBOARD_SECRET_KEY_FILE names.

    Example: pegboard secrets key
    """
    from pegboard.sealing.secret_key import SecretKey

    print(SecretKey.make().text)


def _find_source(config: Path | None) -> tuple[KeyChain | None, str | None]:
    """Where the key comes from, or why there can be none."""
    quiet_logs()
    from pegboard.config import state_folder
    from pegboard.sealing.errors import SealingError
    from pegboard.sealing.key_search import find_source

    storage = load_settings(find_config(config)).storage
    try:
        source = find_source(storage, os.environ, state_folder())
        if source.is_there:
            source.load()
    except SealingError as exc:
        return None, str(exc)
    return source, None


def _with_store(config: Path | None, work: Callable[[OAuthStore], Awaitable[T]], *, as_json: bool) -> T:
    """What this work gives, on the storage of a config."""
    import asyncio

    from pegboard.result import ToolFailure
    from pegboard.storage import open_storage

    setting = load_settings(find_config(config)).storage

    async def run() -> T:
        storage = open_storage(setting)
        await storage.open()
        try:
            return await work(storage.oauth)
        finally:
            await storage.close()

    try:
        return asyncio.run(run())
    except ToolFailure as exc:
        _end(str(exc), as_json=as_json)


def _inventory_data(found: Inventory, source: KeyChain | None, problem: str | None) -> dict[str, Any]:
    return {
        "key": None if source is None else source.place,
        "isMade": source is not None and source.is_there,
        "problem": problem,
        "secrets": found.secrets,
        "keys": [
            {"id": use.name, "secrets": use.secrets, "isThere": use.is_there, "seals": use.seals} for use in found.keys
        ],
        "unreadable": [_describe(row) for row in found.unreadable],
        "withoutKey": [_describe(row) for row in found.without_key],
    }


def _describe(row: SealedRow) -> str:
    """Which secret it is; nothing of it."""
    names = row.key[2:] if row.table == "oauth_flows" else row.key
    # The gateway's own has no principal, and an address of ours tells nobody anything.
    other = f" of {names[1]}" if row.table != "oauth_clients" and names[1] else ""
    return f"{_KINDS[row.table]} {names[0]}{other}"


def _show_inventory(data: Any) -> None:
    if data["problem"]:
        say_wrapped(with_program(f"There is no key that can be used: {data['problem']}"))
    elif not data["isMade"] and data["secrets"]:
        say_wrapped(f"This shell has no key: neither in its environment nor in {data['key']}")
    elif not data["isMade"]:
        say_wrapped(
            f"There is no key yet. One is made at the first sign-in: in your keyring if that works, or {data['key']}"
        )
    else:
        say_wrapped(f"The key comes from {data['key']}.")
    if not data["secrets"]:
        say("Nothing is sealed yet: nobody has signed in to a server.")
    elif data["keys"]:
        table = TerminalTable("key", "secrets", "state")
        for use in data["keys"]:
            state = "in use" if use["seals"] else "old, still opens" if use["isThere"] else "not here"
            table.add(use["id"], str(use["secrets"]), state)
        table.show()
    _show_unreadable(data)


def _show_rotation(data: Any) -> None:
    count = data["resealed"]
    say_wrapped(f"{count} secret{'s were' if count != 1 else ' was'} sealed anew. The key comes from {data['key']}.")
    old = [use for use in data["keys"] if use["isThere"] and not use["seals"]]
    if old and not any(use["secrets"] for use in old):
        is_own = _VARIABLE not in data["key"]
        then = "It goes with the next rotation." if is_own else f"Remove it from {data['key']}."
        say_wrapped(f"Nothing is sealed with the old key any more. {then}")
    _show_unreadable(data)


def _show_unreadable(data: Any) -> None:
    """What was sealed elsewhere may be fine; what was changed is not."""
    elsewhere: Sequence[str] = data["withoutKey"]
    changed = [name for name in data["unreadable"] if name not in elsewhere]
    _show_names(
        "These were sealed with a key that this shell does not have. A gateway that uses them has it, in"
        f" {_VARIABLE} for example: run this with the same environment. If nobody has it any more, sign in again:",
        elsewhere,
    )
    _show_names("These cannot be read, because they were changed. Sign in again:", changed)


def _show_names(said: str, names: Sequence[str]) -> None:
    if names:
        say_wrapped(said, error=True)
    for name in names:
        say(f"  {name}", error=True)


def _how_to_change(place: str) -> str:
    """A key of the environment is changed where the gateways are started."""
    is_file = "(" in place
    first = f"Put a new key in a line before the old one in {place}" if is_file else f"Set {place}=NEW,OLD"
    then = "for every gateway" if is_file else "for every gateway, and start them again"
    return (
        f"the key comes from {place}, and everything is sealed with it already. To change it:\n"
        "  1. Make a new key: pegboard secrets key\n"
        f"  2. {first}, {then}.\n"
        "  3. Seal everything anew, with the same environment: pegboard secrets rotate\n"
        "  4. Remove the old key."
    )
