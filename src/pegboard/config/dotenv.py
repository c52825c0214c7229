"""Files of `NAME=VALUE` lines: `.env` beside the config, and `envFile` of a server. They are read, never executed."""

from __future__ import annotations

import re
from pathlib import Path

from pegboard.config.file import read_file

_MAX_BYTES = 1024 * 1024
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)\s*=\s*(.*)", re.ASCII | re.DOTALL)
_IN_DOUBLE_QUOTES = re.compile(r"\\(.)")
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_REMARK = re.compile(r"(?:^|\s)#.*")


class DotEnv:
    """The variables of a `.env` file, which is read when somebody asks for one that has no value elsewhere."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        # The file, if somebody asked for it; it need not be there.
        self.files: set[Path] = set()
        self._found: dict[str, str] | None = None
        # Why it could not be read; it names no value.
        self.reason: str | None = None

    @property
    def problem(self) -> str | None:
        """The same with the file's name."""
        return None if self.reason is None else f"{self._path} is not used: {self.reason}"

    def get(self, name: str) -> str | None:
        """The value of a variable."""
        if self._found is None:
            self._found = self._read()
        return self._found.get(name)

    def _read(self) -> dict[str, str]:
        if self._path is None:
            return {}
        self.files.add(self._path)
        try:
            return read_environment_file(self._path)
        except (FileNotFoundError, NotADirectoryError):
            return {}
        except (OSError, ValueError) as exc:
            self.reason = str(getattr(exc, "strerror", None) or exc)
            return {}


def read_environment_file(path: Path) -> dict[str, str]:
    """The variables of a file; `OSError` or `ValueError`, without a value in it, if that cannot be."""
    try:
        text = read_file(path, is_found=True, most=_MAX_BYTES).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    found: dict[str, str] = {}
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", ";")):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None or "\0" in stripped:
            raise ValueError(f"line {number}: write NAME=VALUE")
        found[match[1]] = _value(match[2], number)
    return found


def _value(text: str, number: int) -> str:
    """A value as it is meant: in single quotes it stands as it is, in double quotes `\\n` is a line end."""
    if text[:1] not in {"'", '"'}:
        return _REMARK.sub("", text).rstrip()
    quote = text[0]
    end = re.match(r"'([^']*)'\s*(?:#.*)?" if quote == "'" else r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?', text)
    if end is None or end.end() != len(text):
        raise ValueError(f"line {number}: the quotes around the value do not fit")
    if quote == "'":
        return end[1]
    return _IN_DOUBLE_QUOTES.sub(lambda match: _ESCAPES.get(match[1], match[1]), end[1])
