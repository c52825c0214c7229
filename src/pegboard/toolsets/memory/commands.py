"""`memory …`: what agents wrote down, for people."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from pegboard.cli.common import (
    WRONG_CALL,
    ConfigOption,
    JsonOption,
    find_config,
    finish,
    json_argument,
    stop,
    text_of_input,
)
from pegboard.cli.rest_client import Answer, connect
from pegboard.cli.show import TerminalTable, ago, colour_state, highlight
from pegboard.toolsets.memory import transfer_commands

_Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="The namespace; without it, the configured one.")
]
_Limit = Annotated[int, typer.Option(help="How many at most.")]
_Offset = Annotated[int, typer.Option(help="How many to skip.")]
_Text = Annotated[str | None, typer.Option(help="The text; - reads it from stdin.")]
_Summary = Annotated[str | None, typer.Option(help="One line that says what it is about.")]
_Links = Annotated[
    str | None, typer.Option(metavar="JSON", help='Links, as a list of {"key", "type", "term", "weight"}.')
]
_Link = Annotated[list[str] | None, typer.Option("--link", metavar="KEY", help="The key of a memory to link to.")]
_Unsorted = Annotated[bool, typer.Option("--unsorted", help="Show links in the order in which they were written.")]


def add_to(app: typer.Typer) -> None:
    """Add this group's commands."""
    group = typer.Typer(no_args_is_help=True, help="The memory of agents: add, get, search and more.")
    group.command(short_help="Add a memory.")(add)
    for command in (get, update, rename, delete, search, fulltext, linked):
        group.command()(command)
    group.command("list")(list_memories)
    transfer_commands.add_to(group)
    app.add_typer(group, name="memory")


def add(
    key: str,
    text: _Text = None,
    summary: _Summary = None,
    link: _Link = None,
    links: _Links = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the memory that has this key.")] = False,
    namespace: _Namespace = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a memory; without --text and --summary, its text is read from stdin."""
    all_links = _all_links(link, links)
    if text is None and summary is None:
        text = "" if sys.stdin.isatty() else text_of_input()
        if not text.strip():
            stop("a memory needs something to remember: give --text or --summary, or pipe the text in", WRONG_CALL)
    arguments = {"key": key, "summary": summary, "text": _read(text), "links": all_links}
    answer = _ask(config, "memory_add", namespace, **arguments, replace=replace or None)
    finish(answer, as_json=as_json, show=_show_written)


def get(
    key: str,
    offset: Annotated[int, typer.Option(help="The character to start at, if the text was cut.")] = 0,
    links_offset: Annotated[int, typer.Option(help="How many links to skip.")] = 0,
    unsorted: _Unsorted = False,
    namespace: _Namespace = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a memory in full."""
    place = {"offset": offset, "linksOffset": links_offset}
    answer = _ask(config, "memory_get", namespace, key=key, sortLinks=not unsorted, **place)
    finish(answer, as_json=as_json, show=lambda data: _print_memory(data, links_offset))


def update(
    key: str,
    text: _Text = None,
    summary: _Summary = None,
    link: _Link = None,
    links: _Links = None,
    version: Annotated[int | None, typer.Option(help="Only if the memory still has this version.")] = None,
    namespace: _Namespace = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change a memory; what is left out stays."""
    arguments = {"summary": summary, "text": _read(text), "links": _all_links(link, links), "version": version}
    finish(_ask(config, "memory_update", namespace, key=key, **arguments), as_json=as_json, show=_show_written)


def rename(
    old_key: str, new_key: str, namespace: _Namespace = None, config: ConfigOption = None, as_json: JsonOption = False
) -> None:
    """Give a memory another key; its links and its history stay."""
    answer = _ask(config, "memory_rename", namespace, old_key=old_key, new_key=new_key)
    finish(answer, as_json=as_json, show=_show_written)


def delete(key: str, namespace: _Namespace = None, config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Delete a memory."""
    answer = _ask(config, "memory_delete", namespace, key=key)
    finish(answer, as_json=as_json, show=_show_deleted)


def search(
    query: Annotated[str, typer.Argument(help="What you want to know, in plain words.")],
    limit: _Limit = 10,
    offset: _Offset = 0,
    unsorted: _Unsorted = False,
    namespace: _Namespace = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search memories with a question in plain words."""
    page = {"limit": limit, "offset": offset, "sortLinks": not unsorted}
    finish(_ask(config, "memory_search", namespace, query=query, **page), as_json=as_json, show=_show_results)


def fulltext(
    keywords: Annotated[
        list[str], typer.Argument(help="Keywords, also separated by commas; a keyword of several words is a phrase.")
    ],
    every: Annotated[bool, typer.Option("--all", help="All keywords have to match, not any.")] = False,
    limit: _Limit = 10,
    offset: _Offset = 0,
    unsorted: _Unsorted = False,
    namespace: _Namespace = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Search memories for keywords."""
    from pegboard.toolsets.memory.query import split

    words = [word for given in keywords for word in split(given)]
    page = {"limit": limit, "offset": offset, "sortLinks": not unsorted, "operator": "AND" if every else "OR"}
    answer = _ask(config, "memory_fulltext_search", namespace, keywords=words, **page)
    finish(answer, as_json=as_json, show=_show_results)


def linked(
    key: str,
    depth: Annotated[int, typer.Option(help="How many links away at most.")] = 3,
    breadth: Annotated[int, typer.Option(help="How many links of each memory are followed.")] = 5,
    total: Annotated[int, typer.Option(help="How many memories at most.")] = 20,
    unsorted: _Unsorted = False,
    namespace: _Namespace = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a memory and those that its links lead to."""
    walk = {"depth": depth, "breadth": breadth, "total": total, "sortLinks": not unsorted}
    finish(_ask(config, "memory_read_linked", namespace, key=key, **walk), as_json=as_json, show=_show_walk)


def list_memories(
    prefix: Annotated[str | None, typer.Option(help="Only keys with this prefix.")] = None,
    recent: Annotated[bool, typer.Option("--recent", help="The latest change first.")] = False,
    limit: _Limit = 50,
    offset: _Offset = 0,
    namespace: _Namespace = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List memories."""
    page = {"limit": limit, "offset": offset, "order": "recent" if recent else "key"}
    finish(_ask(config, "memory_list", namespace, prefix=prefix, **page), as_json=as_json, show=_show_list)


def _ask(config: Any, tool: str, namespace: str | None, **arguments: Any) -> Answer:
    """The answer of a memory tool, as an agent would get it."""
    given = {name: value for name, value in {**arguments, "namespace": namespace}.items() if value is not None}
    answer = connect(find_config(config)).call(tool, given)
    return answer["data"]["structuredContent"] if "data" in answer else answer


def _read(text: str | None) -> str | None:
    return text_of_input() if text == "-" else text


def _all_links(keys: list[str] | None, links: str | None) -> list[Any] | None:
    from pegboard.exactjson import as_list

    if keys is None and links is None:
        return None
    given = as_list(json_argument(links or "[]", "--links"))
    if given is None:
        stop("--links must be a list", WRONG_CALL)
    return [*given, *({"key": key} for key in keys or [])]


def _show_written(data: dict[str, Any]) -> None:
    print(f"{data['key']} is at version {data['version']}, score {data['meta']['score']:g}")


def _show_deleted(data: dict[str, Any]) -> None:
    print(f"{data['key']} is deleted")


def _show_walk(data: dict[str, Any]) -> None:
    for at, memory in enumerate(data["memories"]):
        if at:
            print()
        _print_memory(memory)
    _print_message(data)


def _print_memory(data: dict[str, Any], links_offset: int = 0) -> None:
    meta = data["meta"]
    print(f"{data['key']}  (version {data['version']}, score {meta['score']:g}, {meta['status']})")
    print("\n\n".join(filter(None, [data["summary"], data["text"]])))
    for link in data["links"]:
        term = f", {link['term']}" if link["term"] else ""
        print(f"  → {link['key']}  ({link['type']}{term}, {link['weight']:g})")
    if more := data.get("moreLinks"):
        print(f"  … {more} more: memory get with --links-offset {links_offset + len(data['links'])}")


def _print_message(data: dict[str, Any]) -> None:
    """How to read on, where an answer had no room for everything."""
    if message := data.get("message"):
        print(message)


def _show_results(data: dict[str, Any]) -> None:
    if not data["results"]:
        print("Nothing found.")
        return
    rows = TerminalTable("key", "relevance", "summary", "excerpt")
    for row in data["results"]:
        excerpt = highlight(row["excerpt"], "bold")
        rows.add(row["key"], f"{row['relevance']:.2f}", row["summary"], excerpt)
    rows.show()
    print(f"{len(data['results'])} of {data['pagination']['total']} that fit")
    _print_message(data)


def _show_list(data: dict[str, Any]) -> None:
    rows = TerminalTable("key", "score", "status", "changed", "summary")
    for row in data["memories"]:
        changed = ago(row["updated_at"].replace("Z", "+00:00"))
        rows.add(row["key"], f"{row['score']:g}", colour_state(row["status"]), changed, row["summary"])
    rows.show()
    print(f"{len(data['memories'])} of {data['pagination']['total']}")
    _print_message(data)
