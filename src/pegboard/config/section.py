"""What the reader of a section of the config may need besides the section."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from pegboard.config.shape import ConfigNode
from pegboard.config.variables import MissingVariable, Variables


@dataclass(frozen=True, slots=True)
class SectionContext:
    """The environment, and a place for what is worth saying."""

    environment: Mapping[str, str]
    remarks: list[str]

    def remark_unknown(self, node: ConfigNode, known: Collection[str]) -> None:
        """Say of each key that means nothing there that it does not."""
        self.remarks.extend(f"pegboard.{node.key}.{key} is not a setting" for key in node.members() if key not in known)

    def folder(self, node: ConfigNode, text: str) -> str:
        """A folder, as seen from where the config file is."""
        return str(node.file.resolve().parent / Path(self.fill_variables(node, text)).expanduser())

    def fill_variables(self, node: ConfigNode, text: str) -> str:
        """A text with the values of its variables."""
        try:
            folder = node.file.resolve().parent
            return Variables(self.environment, folder, base=folder).fill(text)
        except MissingVariable as exc:
            raise node.wrong(str(exc)) from None
