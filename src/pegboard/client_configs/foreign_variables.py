"""Variables as other clients write them, rewritten as Pegboard writes them: carried over, and never resolved."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from pegboard.client_configs.dialect import Dialect
from pegboard.config.variables import input_variable

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_SECRETS = re.compile(rf"\$\{{\{{\s*(?:secrets|inputs|env)\.({_NAME})\s*\}}\}}")
_CURLY = re.compile(rf"(?<![$\w])\{{env:({_NAME})\}}")
_DOLLAR = re.compile(rf"(?<![$\\\w])\$({_NAME})")
_PERCENT = re.compile(rf"%({_NAME})%")
# A value that is one variable, maybe behind the scheme of a header.
_WHOLE = re.compile(rf"((?:Bearer|Basic|Token)\s+)?(?:\$({_NAME})|%({_NAME})%)", re.IGNORECASE)
_OURS = re.compile(r"\$\{([^{}]*)\}")
_FILE = re.compile(r"\{file:([^{}]*)\}")
_EDITOR = re.compile(
    r"\$\{(?:(?:file|line|selected|relative|default|exec)[A-Za-z]{0,40}+|(?:config|command):[^{}]*+|cwd)\}"
)


@dataclass(slots=True)
class VariableTranslator:
    """Rewrites the variables of one entry, and remembers what a person should know about them."""

    dialect: Dialect
    folder: Path | None = None
    # What VS Code asks for: the id of an input and its description.
    inputs: dict[str, str] = field(default_factory=dict[str, str])
    notes: dict[str, None] = field(default_factory=dict[str, None])

    def translate(self, text: str) -> str:
        """A text with its variables in Pegboard's words."""
        if self.dialect.is_literal:
            text = _OURS.sub(self._escape, text)
        text = _SECRETS.sub(r"${\1}", text)
        if self.dialect.curly:
            text = _CURLY.sub(r"${\1}", text)
        text = self._dollars(text)
        text = self._folders(text)
        self._note(text)
        return text

    def _escape(self, match: re.Match[str]) -> str:
        # `${{ secrets.X }}` has no match here: its braces are double.
        self.notes[f"{match.group()} is plain text in that client, and stays so ($${{…}})"] = None
        return f"${match.group()}"

    def _dollars(self, text: str) -> str:
        if self.dialect.dollar:
            return _PERCENT.sub(r"${\1}", _DOLLAR.sub(r"${\1}", text))
        whole = None if self.dialect.is_literal else _WHOLE.fullmatch(text.strip())
        return text if whole is None else f"{whole[1] or ''}${{{whole[2] or whole[3]}}}"

    def _folders(self, text: str) -> str:
        text = text.replace("${pathSeparator}", os.sep).replace("${/}", os.sep)
        if self.folder is not None:
            text = text.replace("${workspaceFolderBasename}", self.folder.name)
            return text.replace("${workspaceFolder}", str(self.folder)).replace("${workspaceRoot}", str(self.folder))
        if "${workspaceFolder" in text:
            self.notes["${workspaceFolder} is the folder of Pegboard's config file here: check it"] = None
        return text

    def _note(self, text: str) -> None:
        for path in _FILE.findall(text) if self.dialect.curly else ():
            self.notes[f"{{file:{path}}} is not read: put the value into a variable"] = None
        for match in _EDITOR.finditer(text):
            self.notes[f"{match.group()} means nothing outside of its editor: replace it"] = None
        for match in _OURS.finditer(text):
            kind, _, identifier = match[1].partition(":")
            if kind == "input" and identifier:
                self._note_input(identifier)

    def _note_input(self, identifier: str) -> None:
        description = " ".join(self.inputs.get(identifier, "").split())[:200]
        self.notes[f"set {input_variable(identifier)}{f' ({description})' if description else ''}"] = None
