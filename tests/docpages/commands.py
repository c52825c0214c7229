"""The page of commands: the help of each."""

from __future__ import annotations

from typer import Typer
from typer.testing import CliRunner

from docpages.generated import HOW
from pegboard.cli.app import app

INTRODUCTION = f"""# Commands

`servers`, `tools`, `find`, `describe`, `call`, `refresh`, `search`, `memory …` (except `export` and `import`) and
`tasks …` ask a running `pegboard serve` of the same config. If there is none, they do the work themselves.
`status`, `logs` and `restart` are about a running `pegboard serve`, and end with exit code 4 if there is none.

| exit code | meaning |
| --- | --- |
| 0 | success |
| 1 | it failed |
| 2 | wrong usage |
| 3 | the config is wrong |
| 4 | a server could not be reached |

{HOW}
"""


def commands_page() -> str:
    """The help of every command."""
    runner = CliRunner(env={"COLUMNS": "100", "TERMINAL_WIDTH": "100"})
    pages = [INTRODUCTION]
    for words in command_names():
        said = runner.invoke(app, [*words, "--help"], prog_name="pegboard").output.strip()
        pages.append(f"## {' '.join(words)}\n\n```text\n{said}\n```\n")
    return "\n".join(pages)


def command_names() -> list[list[str]]:
    """The words of every command, those of groups behind the others."""
    found = [[name] for name in names_in(app)]
    for group in app.registered_groups:
        assert group.typer_instance is not None
        found += [[str(group.name), name] for name in names_in(group.typer_instance)]
    return found


def names_in(commands: Typer) -> list[str]:
    """The commands of a group."""
    return [str(each.name or getattr(each.callback, "__name__", "")) for each in commands.registered_commands]
