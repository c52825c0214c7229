"""`login`, `logout`, `logins`: signing in to servers with OAuth."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pegboard.cli.common import (
    FAILED,
    UNREACHED,
    WRONG_CALL,
    ConfigOption,
    JsonOption,
    exit_code_of_refusal,
    find_config,
    finish,
    json_text,
    stop,
)
from pegboard.cli.page_link import find_page
from pegboard.cli.program import command_for, with_program
from pegboard.cli.rest_client import Answer, RestClient, connect, stay_connected
from pegboard.cli.show import TerminalTable, count_tools, day_and_time, say, say_wrapped, verbatim

if TYPE_CHECKING:
    from rich.text import Text

# The state of a sign-in that can be used.
_LIVE = "live"
_Server = Annotated[str, typer.Argument(metavar="SERVER", help="The server's name.")]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command(short_help="Sign in to a server.")(login)
    app.command(short_help="Sign out of a server, and have its tokens revoked.")(logout)
    app.command(short_help="Show who is signed in where, and until when.")(logins)


def login(
    server: _Server,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser; the address is printed.")] = False,
    device: Annotated[
        bool, typer.Option("--device", help="With a code that you type in on any machine, where the server offers it.")
    ] = False,
    scope: Annotated[
        list[str] | None, typer.Option("--scope", metavar="SCOPE", help="A further scope to ask for; can be repeated.")
    ] = None,
    client_id: Annotated[
        str | None, typer.Option("--client-id", metavar="ID", help="A client that you have registered there yourself.")
    ] = None,
    client_secret_stdin: Annotated[
        bool, typer.Option("--client-secret-stdin", help="Read the client's secret from the standard input.")
    ] = False,
    callback: Annotated[
        str | None,
        typer.Option("--callback", metavar="ADDRESS", help="Finish: the address that the browser was sent to."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sign in to a server: in a browser, by an address that you paste, or with a device code.

    The address is printed first. The command then waits for the browser to come back, or for you to paste the address
    that the browser ended at. Without a terminal it does not wait (except with --device): it prints the address and the
    command that finishes, and ends with exit code 1. With --json it prints the sign-in as it is, and never waits.

    \b
    Example: pegboard login linear
    Example: pegboard login linear --device
    Example: pegboard login linear --callback 'http://127.0.0.1:7420/oauth/callback?code=…&state=…'
    """
    wish = _read_wish(device=device, scopes=scope, client_id=client_id, reads_secret=client_secret_stdin)
    location = find_config(config)
    with stay_connected(location) as gateway:
        if callback is not None:
            answer = gateway.begin_login(server, {"callback": callback})
        else:
            answer = gateway.begin_login(server, wish)
        if as_json or "error" in answer:
            _end_early(answer, location.path, server, as_json=as_json)
        elif answer["data"]["state"] == "waiting":
            answer = _go_on(gateway, answer["data"], location.path, opens=not no_browser)
        if not as_json:
            _report(gateway, answer)


def logout(
    server: _Server,
    everybody: Annotated[
        bool, typer.Option("--all", help="Everybody, where each signs in for themselves; for admins.")
    ] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Sign out of a server: its tokens are revoked there, and deleted here.

    Example: pegboard logout linear
    """
    answer = connect(find_config(config)).logout(server, everybody=everybody)
    finish(answer, as_json=as_json, show=_show_logout)


def logins(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Show who is signed in to which server, since when, until when, and with which scopes.

    A sign-in that renews by itself has no end. With --json, `expiresAt` is the end of the token of now.

    Example: pegboard logins
    """
    finish(connect(find_config(config)).logins(), as_json=as_json, show=_show_logins)


def _sign_in_now(gateway: RestClient, server: str, path: Path) -> None:
    """Sign in to a server at this terminal, and ask it for its tools; the end with what went wrong."""
    answer = gateway.begin_login(server, {})
    if "error" in answer:
        finish(answer, as_json=False, show=lambda _: None)
    if answer["data"]["state"] == "waiting":
        answer = _go_on(gateway, answer["data"], path, opens=True)
    _report(gateway, answer)


def offer_sign_in(server: str, path: Path, *, is_new: bool, as_json: bool) -> None:
    """A server that was added is there, and waits for somebody who signs in: now, if they are at a terminal and say
    so."""
    from pegboard.cli.sign_in import is_at_terminal
    from pegboard.config import Location

    if as_json:
        print(json_text({"success": True, "data": {"needsLogin": True, "server": server, "path": str(path)}}))
        return
    say(f"{server} was added to {path}. It wants a sign-in." if is_new else f"{server} wants a sign-in.")
    if is_at_terminal() and typer.confirm("Sign in now?", default=True, err=True):
        with stay_connected(Location(path, exists=True)) as gateway:
            _sign_in_now(gateway, server, path)
    else:
        say(f"  Sign in with: {command_for('login', server)}")
        if page := find_page(path, "servers", server):
            say(f"  Or in a browser: {page}")
        say(f"  If it takes tokens instead, put one into its headers: {command_for('doctor')} says how.")


def _read_wish(*, device: bool, scopes: list[str] | None, client_id: str | None, reads_secret: bool) -> dict[str, Any]:
    wish: dict[str, Any] = {"device": device, "scopes": [word for text in scopes or () for word in text.split()]}
    if reads_secret and client_id is None:
        stop("--client-secret-stdin needs --client-id", WRONG_CALL)
    if client_id is not None:
        wish["clientId"] = client_id
    if reads_secret:
        if sys.stdin.isatty():
            secret = typer.prompt("Client secret", hide_input=True, err=True)
        else:
            secret = sys.stdin.readline().strip()
        if not secret:
            stop("--client-secret-stdin: nothing came from the standard input", WRONG_CALL)
        wish["clientSecret"] = secret
    return wish


def _end_early(answer: Answer, path: Path, server: str, *, as_json: bool) -> None:
    """Print an answer as it is; of a server that takes tokens alone, how it is given one."""
    from pegboard.cli.config_change import say_advice

    error: Mapping[str, Any] = answer.get("error") or {}
    try:
        finish(answer, as_json=as_json, show=lambda _: None, failed=exit_code_of_refusal(answer))
    finally:
        if not as_json and "says nothing of a sign-in" in error.get("message", ""):
            say_advice(server, error["message"], path)
        elif not as_json and "has no sign-in by device code" in error.get("message", ""):
            say(f"  Sign in with a browser, which may be on any machine: {command_for('login', server)}", error=True)


def _go_on(gateway: RestClient, row: Mapping[str, Any], path: Path, *, opens: bool) -> Answer:
    """Show a sign-in that was begun, and wait for its end where that can be waited for."""
    from pegboard.cli.sign_in import SignInDialog, finish_command, is_at_terminal

    dialog = SignInDialog(gateway, row)
    dialog.show()
    server = str(row["server"])
    if "userCode" not in row and not is_at_terminal():
        if gateway.is_running:
            say_wrapped(
                "The gateway takes the answer, if your browser reaches it. This shows whether it has:", error=True
            )
            say(f"  {command_for('logins')}", error=True)
            if page := find_page(path, "sign-ins"):
                say(f"  In a browser: {page}", error=True)
        say_wrapped("If the browser ends at a page that cannot be shown, finish with that page's address:", error=True)
        say(f"  {finish_command(server)}", error=True)
        raise typer.Exit(FAILED)
    try:
        dialog.open_browser(wanted=opens and is_at_terminal())
        return dialog.wait()
    except KeyboardInterrupt:
        is_over = dialog.cancel()
        say("", error=True)
        if is_over:
            say(f"Cancelled: nothing has changed at {server}.", error=True)
        else:
            said = f"This command waits no longer. The sign-in to {server} goes on: somebody else waits for it, too."
            say_wrapped(said, error=True)
        raise typer.Exit(FAILED) from None


def _report(gateway: RestClient, answer: Answer) -> None:
    """Say what came of it, and what there is to use now."""
    if "error" in answer:
        finish(answer, as_json=False, show=lambda _: None, failed=exit_code_of_refusal(answer))
    row = answer["data"]
    server = str(row["server"])
    if row["state"] != "done":
        stop(f"not signed in to {server}: {row.get('reason', 'it did not come to an end')}", FAILED)
    found = gateway.refresh([server])[server]
    if "error" in found:
        say(f"Signed in to {server}.", error=True)
        stop(f"its tools cannot be had yet: {found['error']['message']}", UNREACHED)
    say(f"Signed in to {server}: {count_tools(found['data']['registered'])}.")


def _show_logout(data: Mapping[str, Any]) -> None:
    server = data["server"]
    if not data["signedOut"] and "others" in data:
        say(f"You were not signed in to {server}.")
        if data["others"]:
            say(f"  To sign out everybody else ({data['others']}): {command_for('logout', server, '--all')}")
    elif not data["signedOut"]:
        say(f"Nobody was signed in to {server}.")
    elif data["revoked"]:
        say(f"Signed out of {server}. The server has confirmed that its tokens are revoked.")
    else:
        said = "The tokens are deleted here. The server did not confirm that it has revoked them"
        say_wrapped(f"Signed out of {server}. {said}: they are good there until they expire.")


def _show_logins(data: Mapping[str, Any]) -> None:
    if not data["logins"]:
        say(with_program("Nobody is signed in. Sign in to a server: pegboard login SERVER"))
        return
    columns = ("server", "who", "since", "good until", "scopes", "issuer")
    table = TerminalTable(*columns, folded=("scopes", "good until"), droppable=("issuer", "scopes"))
    for row in data["logins"]:
        who, scopes = row.get("who", "this gateway"), " ".join(row["scopes"])
        table.add(row["server"], who, day_and_time(row["signedInAt"]), _say_end(row), scopes, row["issuer"])
    table.show()
    for row in data["logins"]:
        if row["state"] != _LIVE:
            say_wrapped(f"{row['server']}: {row.get('reason') or row['state']}", indent="  ")
            say(f"  Sign in again: {command_for('login', row['server'])}")


def _say_end(row: Mapping[str, Any]) -> Text:
    """Until when somebody is signed in. Its token of now ends sooner, and is renewed where it can be."""
    if row["state"] == "unreadable":
        return verbatim("cannot be read", "red")
    if row["state"] != _LIVE:
        return verbatim("over: sign in again", "red")
    if row.get("renews"):
        return verbatim("renews by itself", "green")
    if row["expiresAt"] is None:
        return verbatim("no end is known")
    return verbatim(f"{day_and_time(row['expiresAt'])}, then sign in again", "yellow")
