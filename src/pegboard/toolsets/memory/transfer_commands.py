"""`memory export` and `memory import`: memories into a file and out of it, whether a gateway runs or not."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from pegboard.cli.common import FAILED, ConfigOption, JsonOption, find_config, finish, load_settings, quiet_logs, stop
from pegboard.terminal import plain_json

if TYPE_CHECKING:
    from pegboard.toolsets.memory.memories import Memories


class Form(StrEnum):
    """What a file of memories can look like."""

    PEGBOARD = "pegboard"
    SERVER_MEMORY = "server-memory"


def add_to(group: typer.Typer) -> None:
    """Add this group's commands."""
    group.command("export")(export_memories)
    group.command("import", short_help="Import memories from a file.")(import_memories)


def export_memories(
    file: Annotated[
        Path | None, typer.Argument(help="The file to write; without it, or with -, stdout.", dir_okay=False)
    ] = None,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only this namespace; without it, all.")
    ] = None,
    form: Annotated[
        Form, typer.Option("--format", help="server-memory is the format of npm's server-memory.")
    ] = Form.PEGBOARD,
    config: ConfigOption = None,
) -> None:
    """Export memories as JSON, one per line."""
    from pegboard.toolsets.memory import transfer

    failures: list[OSError] = []

    def work(out: BinaryIO) -> dict[str, Any]:
        def write_line(line: bytes) -> None:
            try:
                out.write(plain_json(line.decode()).encode() if out.isatty() else line)
            except OSError as exc:
                failures.append(exc)
                raise

        async def write(memories: Memories) -> object:
            return await transfer.export_memories(memories, write_line, namespace=namespace, format=form.value)

        answer = _with_memories(config, write)
        # There it counts as a failure of the storage.
        if failures:
            raise failures[0]
        return answer

    try:
        answer = _export_to_stdout(work) if file is None or str(file) == "-" else _export_to_file(file, work)
    except BrokenPipeError:
        # Whoever reads has seen enough.
        raise typer.Exit(FAILED) from None
    except OSError as exc:
        stop(f"{file or 'the output'}: {exc.strerror or exc}", FAILED)
    finish(answer, as_json=False, show=lambda count: print(f"{count} memories", file=sys.stderr))


def import_memories(
    file: Annotated[
        Path, typer.Argument(help="The file to read, Pegboard's own or npm's server-memory; - reads stdin.")
    ],
    replace: Annotated[bool, typer.Option("--replace", help="Replace memories with the same key.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would happen.")] = False,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Import all memories into this namespace.")
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import memories from a file; wrong lines are reported, and the others are imported."""
    from pegboard.toolsets.memory import transfer

    def work(lines: BinaryIO) -> dict[str, Any]:
        async def take_in(memories: Memories) -> object:
            done = await transfer.import_memories(
                memories, lines, replace=replace, namespace=namespace, dry_run=dry_run
            )
            return done.to_dict()

        return _with_memories(config, take_in)

    try:
        with nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb") as lines:
            answer = work(lines)
    except OSError as exc:
        stop(f"{file}: {exc.strerror or exc}", FAILED)
    finish(answer, as_json=as_json, show=_show_imported)
    if answer["data"]["invalid"]:
        raise typer.Exit(FAILED)


def _export_to_stdout(work: Callable[[BinaryIO], dict[str, Any]]) -> dict[str, Any]:
    try:
        answer = work(sys.stdout.buffer)
        sys.stdout.flush()
    except OSError:
        # What is left in the buffer would be tried again, and fail again, when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise
    return answer


def _export_to_file(file: Path, work: Callable[[BinaryIO], dict[str, Any]]) -> dict[str, Any]:
    """Written beside it first: a file that was there stays until the new one is whole."""
    if file.exists() and not file.is_file():
        # A pipe or a device must not be replaced by a file.
        with file.open("wb") as out:
            return work(out)
    unfinished = Path(f"{file}.unfinished")
    try:
        with unfinished.open("wb") as out:
            answer = work(out)
        if "data" in answer:
            unfinished.replace(file)
        return answer
    finally:
        unfinished.unlink(missing_ok=True)


def _with_memories(config: Path | None, work: Callable[[Memories], Awaitable[object]]) -> dict[str, Any]:
    from pegboard.result import as_result, unavailable
    from pegboard.storage import StorageError, open_storage
    from pegboard.toolsets.memory.memories import Memories
    from pegboard.toolsets.memory.settings import MemorySettings

    settings = load_settings(find_config(config))
    quiet_logs()

    async def run() -> dict[str, Any]:
        async def whole() -> object:
            try:
                storage = open_storage(settings.storage)
                await storage.open()
            except StorageError as exc:
                raise unavailable(str(exc)) from None
            try:
                return await work(Memories(storage.database, namespace=settings.of(MemorySettings).namespace))
            finally:
                await storage.close()

        return (await as_result(whole())).to_dict()

    return asyncio.run(run())


def _show_imported(data: dict[str, Any]) -> None:
    print(", ".join(f"{data[what]} {what}" for what in ("added", "replaced", "skipped", "invalid")))
    for problem in data["problems"]:
        print(f"line {problem['line']}: {problem['message']}", file=sys.stderr)
