"""What Pegboard itself has: which of its servers work, so that a client can do without its own, and how many tools."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pegboard.cli.rest_client import RestClient, connect

if TYPE_CHECKING:
    from pegboard.client_configs.context import InstallContext
    from pegboard.client_configs.overlap import Overlap
    from pegboard.client_configs.program import ClientProgram
    from pegboard.config import Location


def with_own_problems(
    context: InstallContext, location: Location, *, is_asking: bool, is_quiet: bool = False
) -> InstallContext:
    """The context with what is wrong with each server. With `is_asking`, those that do not work are tried once more."""
    from pegboard.client_configs.overlap import server_problems

    gateway = connect(location)
    rows = _rows(gateway)
    problems = server_problems(rows)
    names = [row["name"] for row in rows if row["enabled"] and problems[row["name"]] is not None]
    if is_asking and names:
        _ask(gateway, names, is_quiet=is_quiet)
        problems = server_problems(_rows(gateway))
    return replace(context, own_problems=problems)


def find_client_overlap(client: ClientProgram, context: InstallContext) -> Overlap:
    """The servers that a client's own file and Pegboard both have; none where the file cannot be read."""
    from pegboard.client_configs.document import ClientFileError
    from pegboard.client_configs.file_change import read_whole
    from pegboard.client_configs.install import read_document
    from pegboard.client_configs.overlap import Overlap, find_overlap

    file = client.target(context.place)
    try:
        document = None if file is None else read_document(client, file, read_whole(file.path))
    except ClientFileError:
        document = None
    return Overlap() if file is None or document is None else find_overlap(client, file, document, context, "")


def count_all_tools(location: Location) -> int | None:
    """How many tools Pegboard has, those included that no client lists; `None` if that cannot be told."""
    data: dict[str, Any] = connect(location).status().get("data") or {}
    return data.get("tools")


def _ask(gateway: RestClient, names: list[str], *, is_quiet: bool) -> None:
    from rich.console import Console

    with Console(stderr=True, quiet=is_quiet).status("asking the servers that were not reached"):
        gateway.refresh(names)


def _rows(gateway: RestClient) -> list[dict[str, Any]]:
    data: dict[str, Any] = gateway.servers().get("data") or {}
    return data.get("servers") or []
