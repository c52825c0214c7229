"""`add`, `add-json`: one server goes into the config and is asked for its tools."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from pegboard.cli.common import (
    BAD_CONFIG,
    FAILED,
    UNREACHED,
    WRONG_CALL,
    ConfigOption,
    JsonOption,
    json_text,
    stop,
    text_of_input,
)
from pegboard.cli.config_change import ask_servers, config_to_change, edit_config, own_ports, say_advice
from pegboard.cli.logins import offer_sign_in
from pegboard.cli.page_link import find_page
from pegboard.cli.program import command_for, command_line, find_program
from pegboard.cli.registry import (
    CalledOption,
    FromOption,
    InputOption,
    UseOption,
    VersionOption,
    YesOption,
    choose_server,
    registry_wish,
)
from pegboard.cli.rest_client import Answer, connect
from pegboard.cli.show import count_tools, one_line, say, say_wrapped
from pegboard.cli.sign_in_options import (
    SIGN_IN_OPTIONS,
    CallbackPortOption,
    ClientIdOption,
    ClientSecretOption,
    ScopeOption,
    oauth_member,
)
from pegboard.cli.typed_target import is_program, missing_scheme, split_command
from pegboard.cli.wording import for_people, may_sign_in, wants_sign_in

if TYPE_CHECKING:
    from pegboard.config import Location

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+)\s*[:=]\s*(.*)", re.DOTALL)
_TRANSPORTS = {"stdio": "stdio", "http": "http", "streamable-http": "http", "sse": "sse"}
_WITH_VALUE = frozenset({"--env", "-e", "--header", "-H", "--transport", "-t", "--config", "-c"}) | SIGN_IN_OPTIONS
# With `--from` there is no command behind them.
_FROM_WITH_VALUE = frozenset({"--from", "--version", "--as", "--use", "--input"})
# Programs that start servers, and nothing that many would call a server.
_RUNNERS = frozenset({"npx", "uvx", "uv", "bunx", "pnpx", "docker", "podman", "node", "python", "python3", "deno"})
_FLAGS = frozenset({"--sse", "--force", "--json", "--help", "-h"})

_Force = Annotated[bool, typer.Option("--force", help="Replace another server of that name.")]


class AddCommand(TyperCommand):
    """`add` as people type it: `add time npx -y pkg` means the same as with `--` before the command."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the `--` where it was left out."""
        _refuse_missing_name(args)
        return super().parse_args(ctx, separate_command(args))


def _refuse_missing_name(args: Sequence[str]) -> None:
    """`add npx -y PACKAGE`: the program stands where the name belongs."""
    from pegboard.config.secrets import display_args

    words = _words_of_target(args)
    if not words or words[0] not in _RUNNERS:
        return
    others = [word for word in words[1:] if not word.startswith("-")]
    if not others or others[0] in _RUNNERS or _SCHEME.match(others[0]) or is_program(others[0]):
        # A server may be called like a program.
        return
    from pegboard.client_configs.reader import suggest_name

    name = suggest_name({"command": words[0], "args": words[1:]})
    command = command_line([*find_program().words, "add", name, "--", words[0], *display_args(words[1:])])
    stop(f"a name is missing before the command:\n  {command}", WRONG_CALL)


def _words_of_target(args: Sequence[str]) -> list[str]:
    """The arguments of `add` from the first on that is no option."""
    at = 0
    while at < len(args) and args[at].startswith("-"):
        at += 2 if args[at] in _WITH_VALUE | _FROM_WITH_VALUE else 1
    return [word for word in args[at:] if word != "--"]


def separate_command(args: Sequence[str]) -> list[str]:
    """The arguments of `add` with `--` before the command of a server, where that can only be meant."""
    given = list(args)
    found = 0
    at = 0
    while at < len(given) and given[at] != "--":
        word = given[at]
        if word in _WITH_VALUE | _FROM_WITH_VALUE:
            at += 1
        elif not word.startswith("-") or word == "-":
            found += 1
            if found == 2:
                break
        at += 1
    if found < 2 or at >= len(given) or _SCHEME.match(given[at]) or "--" in given[at:]:
        return given
    if missing_scheme([given[at]]):
        # An address: what stands behind it is ours.
        return given
    _refuse_own_options(given[:at], given[at:])
    return [*given[:at], "--", *given[at:]]


def _refuse_own_options(before: Sequence[str], command: Sequence[str]) -> None:
    """An option behind the command may be Pegboard's or the command's: nobody can know."""
    from pegboard.config.secrets import display_args

    for at, word in enumerate(command[1:], 1):
        name = word.partition("=")[0]
        if name in _WITH_VALUE | _FLAGS:
            has_value = name in _WITH_VALUE
            start = command_line([*find_program().words, "add", *_mask_values(before)])
            others = [*command[:at], *command[at + (2 if has_value and "=" not in word else 1) :]]
            ours = f"{start} {name}{' …' if has_value else ''} -- {' '.join(display_args(others))}"
            theirs = f"{start} -- {' '.join(display_args(command[:at]))} {name} …"
            question = f"is {name} an option of Pegboard or of the command? Type one of these:"
            stop(f"{question}\n  {ours}\n  {theirs}", WRONG_CALL)


def _mask_values(words: Sequence[str]) -> list[str]:
    """The words, without what variables and headers are set to."""
    secret = _WITH_VALUE - {"--config", "-c", "--transport", "-t"}
    values = {at + 1 for at, word in enumerate(words) if word in secret}
    return [re.sub(r"[=:].*", "=…", word) if at in values else word for at, word in enumerate(words)]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    app.command(cls=AddCommand)(add)
    app.command("add-json", short_help="Add a server from JSON, or from a client's config.")(add_json)


def add(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The server's name.")] = "",
    target: Annotated[
        list[str] | None,
        typer.Argument(metavar="URL|COMMAND", help="Its address, or -- and the command that runs it."),
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            "-e",
            metavar="K=V|K",
            help="Environment of the command; K alone is taken from the environment in which Pegboard is started.",
        ),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="'K: V'|K=V", help="HTTP header.")
    ] = None,
    transport: Annotated[
        str | None, typer.Option("--transport", "-t", metavar="stdio|http|sse", help="How the server is spoken to.")
    ] = None,
    sse: Annotated[bool, typer.Option("--sse", help="The same as --transport sse.")] = False,
    client_id: ClientIdOption = None,
    client_secret: ClientSecretOption = None,
    callback_port: CallbackPortOption = None,
    scope: ScopeOption = None,
    source: FromOption = None,
    version: VersionOption = None,
    called: CalledOption = None,
    use: UseOption = None,
    values: InputOption = None,
    yes: YesOption = False,
    force: _Force = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a server to the config and ask it for its tools at once.

    A server that cannot be reached yet stays in the config. The same command again is a new try.

    \b
    Examples:
      pegboard add docs https://example.com/mcp -H 'Authorization: Bearer ${DOCS_TOKEN}'
      pegboard add time -- uvx mcp-server-time --local-timezone UTC
      pegboard add github --env GITHUB_TOKEN -- npx -y @example/github-server
      pegboard add --from io.github.someone/weather
    """
    oauth = oauth_member(client_id, client_secret, callback_port, scope)
    wish = registry_wish(source, version, called, use, values or [], yes=yes, force=force)
    if wish is None:
        if not name.strip() or not target:
            stop(_missing(name.strip(), target or []), WRONG_CALL)
        entry = _entry(target, _variables(env), _headers(header), _transport(transport, sse=sse), oauth)
    else:
        if target or header or sse or transport or oauth:
            stop("--from stands for the URL or the command: leave those out", WRONG_CALL)
        chosen = choose_server(config_to_change(config), wish.with_name(name).with_values(env or []))
        name, entry = chosen.name, chosen.entry
        # Secrets that were typed are for this first look; the file names the variables.
        os.environ.update(chosen.environment)
    _add(name, entry, config, force=force, as_json=as_json)


def _missing(name: str, target: Sequence[str]) -> str:
    """What a call without a name, or without a target, lacks."""
    if _SCHEME.match(name):
        from pegboard.client_configs.reader import suggest_name

        address = {"url": name}
        return f"a name is missing before the URL: pegboard add {suggest_name(address)} {_display(address)}"
    forms = "pegboard add {0} URL, or pegboard add {0} -- COMMAND"
    if name:
        search = "To look for published ones: pegboard search WORDS"
        return f"{name} needs a URL or a command: {forms.format(name)}.\n{search}"
    lacks = "a server needs a name" if target else "a server needs a name, and a URL or a command"
    return f"{lacks}: {forms.format('NAME')}.\nFor a published one: pegboard add --from NAME"


def add_json(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="The server's name; without it, the one that the text has.")
    ],
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="JSON", help="An entry or a config in any client's format; - is the standard input."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask about what you did not type.")] = False,
    force: _Force = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a server from JSON, or from whatever a client's config or a README has for it.

    What a link or the standard input has in it is shown first, and written after a yes.

    \b
    Examples:
      pegboard add-json time '{"command": "uvx", "args": ["mcp-server-time"]}'
      pegboard add-json '{"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"]}}}'
      pegboard add-json docs --yes - < snippet.toml
    """
    if len(words or []) > 1:
        stop(f"the text needs quotes around it, or the shell takes it apart: {_json_form(name)}", WRONG_CALL)
    # A text alone has the name in it.
    name, text = (name, words[0]) if words else ("", name)
    if re.fullmatch(r"[\w.-]+", text) and text != "-":
        stop(f"the JSON text is missing: {_json_form(text)}", WRONG_CALL)
    name, entry = _read_entry(name, text_of_input() if text == "-" else text)
    if text == "-" or _is_link(text):
        _ask_about(name, entry, yes=yes)
    _add(name, entry, config, force=force, as_json=as_json)


def _json_form(name: str) -> str:
    return f"""pegboard add-json {name} '{{"command": …}}'"""


def _add(name: str, entry: Mapping[str, Any], config: Path | None, *, force: bool, as_json: bool) -> None:
    if not name.strip():
        stop("a server needs a name", WRONG_CALL)
    from pegboard.config.edit import add_server, find_entry
    from pegboard.config.settings import ServerExistsError
    from pegboard.names import fold_server_name

    location = config_to_change(config)
    path, before = location.path, find_entry(location.path, name)
    _refuse_itself(entry, path)
    may_replace = force or (before is not None and _has_only_failed(location, fold_server_name(name), before))

    def write() -> bool:
        try:
            return add_server(path, name, entry, force=may_replace, needs_trust=location.needs_trust)
        except ServerExistsError as exc:
            stop(f"{exc}:\n  {_display(before)}\n{_ways_out(name)}", BAD_CONFIG)

    is_new = edit_config(write)
    folded = fold_server_name(name)
    if not is_new and not as_json:
        _say_known(folded, path, before, entry)
    if not as_json:
        _say_secrets(folded, entry, path)
    answer = _with_progress(f"asking {folded} for its tools", lambda: ask_servers(path, [folded])[folded])
    _finish(answer, folded, path, is_new=is_new, as_json=as_json)


def _refuse_itself(entry: Mapping[str, Any], path: Path) -> None:
    """A gateway that asks itself for its tools would do so without an end."""
    from pegboard.client_configs.entries import DEFAULT_PORT, is_own_entry

    if is_own_entry(entry, {DEFAULT_PORT, *own_ports(path)}):
        stop("this is Pegboard itself: to connect a client to it, use pegboard install CLIENT", WRONG_CALL)


def _has_only_failed(location: Location, name: str, before: Mapping[str, Any]) -> bool:
    """Whether a server was tried and never seen, so that another entry corrects it. A secret in it would be lost."""
    from pegboard.config.literal_secrets import has_secret

    if has_secret(before) or not location.exists:
        return False
    data: dict[str, Any] = connect(location).servers().get("data") or {}
    rows = [row for row in data.get("servers", ()) if row["name"] == name]
    return any(row["enabled"] and row["lastError"] and not row["seen"] for row in rows)


def _say_secrets(name: str, entry: Mapping[str, Any], path: Path) -> None:
    """Say which secrets are in the file now, and how to keep them out of it."""
    from pegboard.config.literal_secrets import literal_secrets

    for place in literal_secrets(entry):
        kind, _, key = place.partition(" ")
        what = "SECRET" if kind == "oauth" else "TOKEN"
        variable = key if kind == "env" else f"{re.sub(r'[^A-Z0-9]', '_', name.upper())}_{what}"
        value = str(entry["headers"][key]) if kind == "header" else ""
        scheme = "Bearer " if value.lower().startswith("bearer ") else ""
        form = {"env": f"-e {key}", "header": f"-H '{key}: {scheme}${{{variable}}}'"}.get(kind, f"${{{variable}}}")
        say(f"note: the secret in {place} is in {path} as plain text.", error=True)
        say(f"  To keep it out, export {variable}, and give {form} instead, with --force.", error=True)


def _say_known(name: str, path: Path, before: Mapping[str, Any] | None, entry: Mapping[str, Any]) -> None:
    from pegboard.config.edit import is_same_entry

    if is_same_entry(before or {}, entry):
        say(f"{name} is in {path} already, with the same entry. It is asked again.")
    else:
        say(f"{name} was replaced in {path}. It was: {_display(before)}")


def _finish(answer: Answer, name: str, path: Path, *, is_new: bool, as_json: bool) -> None:
    error = answer.get("error")
    if error is not None and _can_sign_in(error["message"], name, path):
        offer_sign_in(name, path, is_new=is_new, as_json=as_json)
        return
    if as_json:
        page = find_page(path, "servers", name)
        about = {"server": name, "path": str(path), **({"page": page} if page else {})}
        print(json_text({**answer, "data": {**(answer.get("data") or {}), **about}}))
    elif error is None:
        say(f"{name} was added to {path}: {_tools(answer)}." if is_new else f"{name}: {_tools(answer)}.")
        if page := find_page(path, "servers", name):
            say(f"  In a browser: {page}")
    else:
        say_wrapped(f"pegboard: {for_people(error['message'])}", error=True)
        say_advice(name, error["message"], path)
        say_wrapped(f"{name} is in {path} all the same.", error=True)
        say(f"  To ask it again: {command_for('refresh', name)}", error=True)
        say(f"  To take it out:  {command_for('remove', name)}", error=True)
        if page := find_page(path, "servers", name, tab="log"):
            say(f"  Its log:         {page}", error=True)
    if error is not None:
        raise typer.Exit(UNREACHED)


def _can_sign_in(said: str, name: str, path: Path) -> bool:
    """Whether a server has a sign-in; one that does not say so is asked where it would be."""
    from pegboard.cli.discovery_check import finds_sign_in

    return wants_sign_in(said) or (may_sign_in(said) and finds_sign_in(name, path))


def _tools(answer: Answer) -> str:
    return count_tools(answer["data"]["registered"])


def _display(entry: Mapping[str, Any] | None) -> str:
    from pegboard.config.entry_effects import display_command

    return display_command(entry) if entry else "an entry that cannot be read"


def _ways_out(name: str) -> str:
    see = f"To see it: {command_for('servers')}"
    return f"To replace it, add --force. To keep both, choose another name.\n{see}"


def _with_progress(text: str, work: Any) -> Answer:
    from rich.console import Console

    with Console(stderr=True).status(text):
        return work()


def _read_entry(name: str, text: str) -> tuple[str, Mapping[str, Any]]:
    """The one entry that a text has, or the one of that name; under its own name where none is given."""
    from pegboard.client_configs.import_plan import entry_problem
    from pegboard.client_configs.reader import no_servers, read_text
    from pegboard.client_configs.reading import PASTED
    from pegboard.names import fold_server_name

    reading = no_servers(read_text(text, PASTED), PASTED)
    named = [each for each in reading.servers if fold_server_name(each.name) == fold_server_name(name)]
    servers = named or list(reading.servers)
    if not servers:
        stop("; ".join(str(each) for each in reading.unreadable), WRONG_CALL)
    if len(servers) > 1:
        names = ", ".join(each.name for each in servers[:10])
        stop(f"the text has {len(servers)} servers ({names}): take them over with pegboard import -", WRONG_CALL)
    (server,) = servers
    name = name or server.name
    if problem := entry_problem(name, server.entry):
        stop(f"{server.place}: {problem}", WRONG_CALL)
    for each in (*(f"left out: {left}" for left in server.left_out), *server.notes):
        say(f"note: {each}", error=True)
    return name, server.entry


def _is_link(text: str) -> bool:
    """Whether it is a one-click link, which nobody can read: its entry is encoded."""
    from pegboard.client_configs.install_link import parse_link

    return parse_link(text) is not None


def _ask_about(name: str, entry: Mapping[str, Any], *, yes: bool) -> None:
    """Show all that an entry does that its owner has not seen, and go on after a yes."""
    from pegboard.config.entry_effects import display_command, entry_effects

    say(f"{one_line(name)}: {display_command(entry)}", error=True)
    for line in entry_effects(entry):
        say(f"  {line}", error=True)
    if yes:
        return
    if not sys.stdin.isatty():
        stop("nothing was written: there is nobody to ask. Look at the lines above, and add --yes to write it.", FAILED)
    if not typer.confirm("Add it?", err=True):
        stop("nothing was written", FAILED)


def _transport(given: str | None, *, sse: bool) -> str | None:
    kind = None if given is None else _TRANSPORTS.get(given.lower())
    if given is not None and kind is None:
        stop(f"--transport must be stdio, http or sse, found {given!r}", WRONG_CALL)
    if sse and kind not in {None, "sse"}:
        stop(f"--sse and --transport {kind} contradict each other", WRONG_CALL)
    return "sse" if sse else kind


def _entry(
    target: list[str], env: dict[str, str], headers: dict[str, str], kind: str | None, oauth: dict[str, Any]
) -> dict[str, object]:
    if target[0].startswith(("http://", "https://")) and kind != "stdio":
        if len(target) > 1 or env:
            stop("a URL stands alone: arguments and --env are for commands", WRONG_CALL)
        entry: dict[str, object] = {"type": kind or "http", "url": target[0]}
        return entry | ({"headers": headers} if headers else {}) | ({"oauth": oauth} if oauth else {})
    if _SCHEME.match(target[0]):
        wrong = "a server's address begins with http:// or https://"
        stop(f"{target[0]}: {'--transport stdio is for a command' if kind == 'stdio' else wrong}", WRONG_CALL)
    if kind != "stdio" and (address := missing_scheme(target)):
        stop(f"this is no command: did you mean {_display({'url': address})}?", WRONG_CALL)
    if headers or oauth or kind in {"http", "sse"}:
        stop("--header, --sse, --transport http and the options of a sign-in are for a URL", WRONG_CALL)
    try:
        words = split_command(target)
    except ValueError:
        stop("the command cannot be split into words: a quote is never closed", WRONG_CALL)
    command: dict[str, object] = {"command": words[0], "args": words[1:]}
    return command | ({"env": env} if env else {})


def _variables(given: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in given or []:
        key, equals, value = item.partition("=")
        if not key.strip() or (not equals and not re.fullmatch(r"[A-Za-z_]\w*", key)):
            stop(f"--env needs K=V, or the name of a variable, found {_shorten(item)}", WRONG_CALL)
        pairs[key] = value if equals else f"${{{key}}}"
    return pairs


def _headers(given: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for item in given or []:
        found = _HEADER.fullmatch(item)
        if found is None:
            stop(f'--header needs "K: V" or K=V, found {_shorten(item)}', WRONG_CALL)
        pairs[found[1]] = found[2]
    return pairs


def _shorten(item: str) -> str:
    """What was given, as far as it may be shown: it may be a secret alone."""
    return repr(item) if len(item) <= 3 else f"{item[:2]!r}…"
