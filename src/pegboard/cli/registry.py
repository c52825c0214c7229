"""`search`, and `add --from`: servers that others have published in the MCP registry."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, NoReturn
from urllib.parse import quote

import typer

from pegboard.cli.common import BAD_CONFIG, FAILED, WRONG_CALL, ConfigOption, JsonOption, find_config, finish, stop
from pegboard.cli.program import command_for, with_program
from pegboard.cli.rest_client import RestClient, connect
from pegboard.cli.show import one_line, say
from pegboard.terminal import plain

if TYPE_CHECKING:
    from pegboard.config import Location
    from pegboard.mcp_registry.proposal import Proposal
    from pegboard.mcp_registry.question import Question
    from pegboard.mcp_registry.recipe import Recipe

_WIDTH = 100

# The options of `add` that belong to `--from`.
FromOption = Annotated[str | None, typer.Option("--from", metavar="NAME", help="Take it from the MCP registry.")]
VersionOption = Annotated[str | None, typer.Option("--version", help="With --from: which version.")]
CalledOption = Annotated[str | None, typer.Option("--as", metavar="NAME", help="With --from: its name here.")]
UseOption = Annotated[int | None, typer.Option("--use", help="With --from: which of several ways to run it.", min=1)]
InputOption = Annotated[
    list[str] | None, typer.Option("--input", metavar="K=V", help="With --from: a value that the server wants.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="With --from: do not ask.")]


def add_to(app: typer.Typer) -> None:
    """Add this group's command."""
    app.command()(search)


def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS…", help="What the server should do.")],
    limit: Annotated[int, typer.Option(help="How many at most.", min=1, max=100)] = 10,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search the MCP registry for servers. Nothing is installed.

    Example: pegboard search weather forecast
    """
    query = " ".join(words)
    if not query.strip():
        stop("say what to search for", WRONG_CALL)
    from rich.console import Console

    gateway = _connect(find_config(config))
    with Console(stderr=True, quiet=as_json).status("reading the MCP registry"):
        answer = gateway.get("/api/registry", q=query, limit=limit)
    finish(answer, as_json=as_json, show=_show_found)


def _connect(location: Location) -> RestClient:
    """Whoever asks the registry. A registry that this shell names is asked from here: a running gateway has its own."""
    return connect(location, alone=bool(os.environ.get("PEGBOARD_REGISTRY")))


@dataclass(frozen=True, slots=True)
class RegistryWish:
    """What `add --from` was told."""

    name: str
    version: str | None = None
    # What the server is to be called here.
    called: str | None = None
    # Which of several ways to run it, counted from 1.
    use: int | None = None
    # `K=V`, or `K` for a value that the environment has at run time.
    values: Sequence[str] = ()
    yes: bool = False
    # Whether another server of that name is replaced; if that is not known, it is looked at when the entry is written.
    force: bool | None = None

    def with_name(self, name: str) -> RegistryWish:
        """The same, called like this, if nothing else was said."""
        return replace(self, called=self.called or name or None)

    def with_values(self, values: Sequence[str]) -> RegistryWish:
        """The same with more values."""
        return replace(self, values=(*self.values, *values))


@dataclass(frozen=True, slots=True)
class ChosenServer:
    """An entry that somebody said yes to, and secrets that hold only as long as this command."""

    name: str
    entry: dict[str, object]
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


def registry_wish(
    source: str | None,
    version: str | None,
    called: str | None,
    use: int | None,
    values: Sequence[str],
    *,
    yes: bool,
    force: bool | None = None,
) -> RegistryWish | None:
    """What the options of `--from` say together, if it was given; without it they mean nothing."""
    if source is not None:
        return RegistryWish(source, version, called, use, values, yes, force)
    if version is not None or use is not None or called is not None or values:
        stop("--version, --as, --use and --input go with --from", WRONG_CALL)
    return None


def choose_server(location: Location, wish: RegistryWish) -> ChosenServer:
    """Show what a server of the registry would run, and ask; without a yes the command ends here. Nothing has run."""
    data = _fetch(location, wish)
    from pegboard.cli.http_transport import find_running
    from pegboard.mcp_registry.proposal import problem_of, recipes_of
    from pegboard.mcp_registry.rows import server_name
    from pegboard.mcp_registry.server_json import read_server

    server = read_server(data["record"])
    recipes = recipes_of(server)
    _show_server(data)
    at = wish.use or next((at for at, each in enumerate(recipes, 1) if problem_of(each) is None), None)
    if at is None or at > len(recipes) or problem_of(recipes[at - 1]) is not None:
        _stop_without(recipes, at)
    recipe, name = recipes[at - 1], wish.called or server_name(server)
    asks = not wish.yes and sys.stdin.isatty()
    answers = _answers(wish.values)
    # A gateway that runs has an environment of its own: a secret that is told here does not reach it.
    is_alone = find_running(location.path) is None
    proposal = _propose(recipe, name, answers)
    if wish.force is False:
        open_keys = _plain_questions(recipe, answers) if asks else []
        _check_name(location, name, proposal, recipe if open_keys else None)
    secrets = _ask(recipe, answers, name, with_secrets=is_alone) if asks else {}
    proposal = _propose(recipe, name, answers)
    _show_proposal(recipe, proposal, name)
    _show_others(recipes, at)
    _confirm(proposal, answers, yes=wish.yes)
    given = _session_values(proposal, answers)
    if given and not is_alone:
        say(f"note: the gateway that runs reads {', '.join(given)} from its own environment: set it there", error=True)
    return ChosenServer(name, proposal.entry, given | secrets)


def _fetch(location: Location, wish: RegistryWish) -> dict[str, Any]:
    from rich.console import Console

    gateway = _connect(location)
    with Console(stderr=True).status("asking the MCP registry"):
        answer = gateway.get(f"/api/registry/{quote(wish.name, safe='', errors='replace')}", version=wish.version)
    data: dict[str, Any] = answer.get("data") or {}
    finish(answer, as_json=False, show=lambda _: None)
    return data


def _answers(values: Sequence[str]) -> dict[str, list[str]]:
    answers: dict[str, list[str]] = {}
    for item in values:
        key, equals, value = item.partition("=")
        if not key:
            stop(f"a value is given as K=V, found {item!r}", WRONG_CALL)
        answers.setdefault(key, []).append(value if equals else f"${{{key}}}")
    return answers


def _propose(recipe: Recipe, name: str, answers: Mapping[str, Sequence[str]]) -> Proposal:
    from pegboard.mcp_registry.proposal import propose
    from pegboard.mcp_registry.question import WrongAnswer
    from pegboard.mcp_registry.recipe import CannotRun
    from pegboard.mcp_registry.template import UnusableText

    try:
        return propose(recipe, name, answers)
    except WrongAnswer as exc:
        stop(str(exc), WRONG_CALL)
    except (UnusableText, CannotRun) as exc:
        stop(str(exc), FAILED)


def _plain_questions(recipe: Recipe, answers: Mapping[str, Sequence[str]]) -> list[str]:
    """The keys of what will be asked and written into the entry."""
    wanted = [question for question in recipe.questions.values() if question.is_required and not question.is_secret]
    return [question.key for question in wanted if question.key not in answers]


def _check_name(location: Location, name: str, proposal: Proposal, asked: Recipe | None) -> None:
    """Refuse a name that another server has, before anything is asked. The same entry again is a new try; of a recipe
    that still has questions, nobody knows yet whether it becomes the same."""
    from pegboard.config.edit import find_entry, is_same_entry
    from pegboard.config.entry_effects import display_command
    from pegboard.mcp_registry.proposal import may_come_of

    before = find_entry(location.path, name)
    if before is None or is_same_entry(before, proposal.entry) or (asked is not None and may_come_of(asked, before)):
        return
    stop(
        f'{location.path}: there is a server "{name}" already:\n  {display_command(before)}\n'
        "To replace it, add --force. To keep both, choose another name: --as NAME",
        BAD_CONFIG,
    )


def _ask(recipe: Recipe, answers: dict[str, list[str]], name: str, *, with_secrets: bool) -> dict[str, str]:
    """Ask for what is required and was not given; the answers are added. Secrets are given back alone."""
    secrets: dict[str, str] = {}
    for question in recipe.questions.values():
        variable = question.variable_for(name)
        if not question.is_required or question.key in answers:
            continue
        if question.is_secret and question.variable in os.environ:
            _ask_to_give(question)
            continue
        if question.is_secret and not with_secrets:
            continue
        say("", error=True)
        for line in _question_lines(question):
            say(line, error=True)
        if not question.is_secret:
            answers[question.key] = [_ask_plain(question)]
        elif variable not in os.environ and (value := _ask_secret(variable)):
            secrets[variable] = value
    return secrets


def _ask_plain(question: Question) -> str:
    from pegboard.mcp_registry.question import WrongAnswer

    # The prompt writes on the terminal as it is, in contrast to `say`.
    name = plain(one_line(question.key, 100))
    while True:
        answer: str = typer.prompt(f"  {name}", default=question.default, err=True)
        try:
            question.check([answer])
        except WrongAnswer as exc:
            say(f"  {exc}", error=True)
        else:
            return answer


def _ask_to_give(question: Question) -> None:
    """The publisher chose the variable's name: it may be one that is set for something else."""
    say("", error=True)
    for line in _question_lines(question):
        say(line, error=True)
    if not typer.confirm(f"  {question.variable} is set here. Give its value to this server?", err=True):
        stop(f"nothing was changed. To give it another value: --env {question.variable}=VALUE", FAILED)


def _confirm(proposal: Proposal, answers: Mapping[str, Sequence[str]], *, yes: bool) -> None:
    """Go on after a yes, and end without one."""
    if yes:
        _check_named(proposal, answers)
    elif not sys.stdin.isatty():
        stop("there is no terminal to ask at: nothing was added. Say yes with --yes", FAILED)
    elif not typer.confirm("\nAdd it?", err=True):
        stop("nothing was changed", FAILED)


def _check_named(proposal: Proposal, answers: Mapping[str, Sequence[str]]) -> None:
    """Nobody is asked: a variable whose name the publisher chose goes to the server only if the user says that name."""
    chosen = {variable: question for variable, question in proposal.variables.items() if question.variable is not None}
    if unnamed := [variable for variable, question in chosen.items() if question.key not in answers]:
        options = " ".join(f"--env {variable}" for variable in unnamed)
        stop(
            f"nothing was added. Its publisher asks for {', '.join(unnamed)} of your environment, and --yes alone does "
            f"not give that away. If the server may have it, add {options}",
            WRONG_CALL,
        )


def _ask_secret(variable: str) -> str:
    say("  It is used for the first try alone, and written nowhere. Empty: not now.", error=True)
    return typer.prompt(f"  {variable}", default="", show_default=False, hide_input=True, err=True)


def _session_values(proposal: Proposal, answers: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Secrets that were given with an option: the entry has a variable in their place."""
    given = {variable: answers.get(question.key) for variable, question in proposal.variables.items()}
    return {variable: values[0] for variable, values in given.items() if values}


def _stop_without(recipes: Sequence[Recipe], at: int | None) -> NoReturn:
    from pegboard.mcp_registry.proposal import problem_of

    if at is not None and not 1 <= at <= len(recipes):
        stop(f"--use must be from 1 to {len(recipes)}, found {at}", WRONG_CALL)
    chosen = recipes if at is None else [recipes[at - 1]]
    reasons = [f"\n  {each.kind} {one_line(each.about, 200)}: {problem_of(each)}" for each in chosen]
    stop(f"it cannot be added:{''.join(reasons) or ' it names neither a package nor an address'}", FAILED)


def _show_found(data: dict[str, Any]) -> None:
    for row in data["servers"]:
        deprecated = "  (deprecated)" if row["status"] == "deprecated" else ""
        say(f"{row['name']}  {one_line(row['version'], 60)}{deprecated}")
        say(f"  by {_publisher(row['publisher'])}")
        for text in (row["description"] or row["title"], *_ways(row["runs"])):
            say(_fit(f"  {one_line(text)}"))
        say("")
    for note in data["notes"]:
        say(f"note: {note}", error=True)
    if data["servers"]:
        say(f"{len(data['servers'])} of {data['total']} that fit. Add one: {command_for('add', '--from', 'NAME')}")
    else:
        say(f"Nothing fits, among {data['known']:,} servers. Try other words.")


def _ways(runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for run in runs[:3]:
        yield f"{'→' if run['problem'] is None else '✗'} {run['command'] or run['kind'] + ': ' + run['problem']}"
    if len(runs) > 3:
        yield f"  and {len(runs) - 3} more ways"


def _publisher(namespace: str) -> str:
    """Who has proven to own a namespace: an account of GitHub, or a domain, which stands there back to front."""
    parts = namespace.split(".")
    if parts[:2] == ["io", "github"] and len(parts) > 2:
        return f"{'.'.join(parts[2:])} on GitHub ({namespace})"
    return f"{'.'.join(reversed(parts))} ({namespace})" if len(parts) > 1 else namespace or "nobody named"


def _fit(line: str) -> str:
    """A line as wide as the terminal; nothing is cut where there is none."""
    from pegboard.text import truncate

    return truncate(line, shutil.get_terminal_size((_WIDTH, 24)).columns) if sys.stdout.isatty() else line


def _show_server(row: Mapping[str, Any]) -> None:
    say(f"{row['name']}  {one_line(str(row['version']), 60)}", error=True)
    facts = {
        "publisher": _publisher(str(row["publisher"])),
        "about": row["description"] or row["title"],
        "source": row["repository"] or row["website"],
        "updated": str(row["updatedAt"])[:10],
    }
    for name, text in facts.items():
        if text:
            _show_fact(name, one_line(str(text), 1000))
    if row["status"] == "deprecated":
        _show_fact("warning", f"it is deprecated. {one_line(str(row['statusMessage']), 500)}")
    for note in row["notes"]:
        _show_fact("note", str(note))


def _show_fact(name: str, text: str) -> None:
    width = max(40, min(shutil.get_terminal_size((_WIDTH, 24)).columns, 120))
    lines = textwrap.wrap(text, width - 13, break_on_hyphens=False) or [""]
    for at, line in enumerate(lines):
        say(f"  {name if at == 0 else '':<10} {line}", error=True)


def _show_proposal(recipe: Recipe, proposal: Proposal, name: str) -> None:
    from pegboard.exactjson import as_object
    from pegboard.mcp_registry.proposal import command_line

    what = "It connects to:" if "url" in proposal.entry else "It runs, whenever it is used:"
    # Not folded: what is copied from here is what runs.
    say(f"\n{what}\n  {command_line(proposal.entry)}", error=True)
    for kind, said in (("env", "with the variables"), ("headers", "with the headers")):
        if values := as_object(proposal.entry.get(kind)):
            say(f"  {said} {_pairs(values)}", error=True)
    for warning in proposal.warnings:
        _show_fact("warning", warning)
    _show_variables(recipe, proposal)
    left = [question for question in recipe.questions.values() if not question.is_required]
    if left:
        say("\nYou can also set, with --input NAME=VALUE:", error=True)
        for line in (line for question in left for line in _question_lines(question)):
            say(line, error=True)
    say(f"\nIn the config it is called {name}.", error=True)


def _show_variables(recipe: Recipe, proposal: Proposal) -> None:
    if not proposal.variables:
        return
    sent = "" if recipe.command else f", and sends to {one_line(recipe.about, 200)}"
    say(with_program(f"\nIt reads from the environment of pegboard serve{sent}:"), error=True)
    for variable, question in proposal.variables.items():
        facts = ("secret" if question.is_secret else "", "set here" if os.environ.get(variable) else "not set here")
        more = ", ".join(filter(None, facts))
        about = f": {one_line(question.description, 300)}" if question.description else ""
        say(f"  {variable}{f' ({more})' if more else ''}{about}", error=True)
    if keys := [question.key for question in proposal.variables.values() if not question.is_secret]:
        say(f"  To write a value into the config instead: --input {one_line(keys[0], 100)}=VALUE", error=True)


def _pairs(values: Mapping[Any, Any]) -> str:
    from pegboard.terminal import visible_json

    return visible_json(", ".join(f"{name}={value}" for name, value in values.items()))


def _question_lines(question: Question) -> Iterator[str]:
    kind = [
        "secret" if question.is_secret else question.format or "",
        f"default {question.default!r}" if question.default is not None and not question.is_secret else "",
        f"one of {', '.join(question.choices)}" if question.choices else "",
        f"for example {question.placeholder!r}" if question.placeholder else "",
        "can be repeated" if question.is_repeated else "",
    ]
    more = "; ".join(one_line(each, 300) for each in kind if each)
    yield f"  {one_line(question.key, 100)}{f' ({more})' if more else ''}"
    if question.description:
        yield f"    {one_line(question.description, 500)}"


def _show_others(recipes: Sequence[Recipe], at: int) -> None:
    from pegboard.mcp_registry.proposal import problem_of

    for other, recipe in enumerate(recipes, 1):
        if other != at:
            problem = problem_of(recipe)
            way = f"--use {other}" if problem is None else one_line(problem, 300)
            _show_fact("or", f"{recipe.kind} {one_line(recipe.about, 200)}: {way}")
