"""Where the values of a config's variables may come from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pegboard.config.dotenv import DotEnv
from pegboard.config.variables import Variables


@dataclass(frozen=True, slots=True)
class ValueSources:
    """What all servers of one config share."""

    environment: Mapping[str, str]
    dotenv: DotEnv
    # Nobody named the config file.
    is_found: bool
    reads_files: bool
    # Which were read for some server.
    files: set[Path] = field(default_factory=set[Path])

    def variables(self, folder: Path) -> Variables:
        """What fills in the variables of one server; `folder` is that of the config file."""
        return Variables(
            self.environment,
            folder.parent if folder.name in {".vscode", ".cursor"} else folder,
            base=folder if self.reads_files else None,
            files=self.files,
            dotenv=self.dotenv,
            is_found=self.is_found,
        )
