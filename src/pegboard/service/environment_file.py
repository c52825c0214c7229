"""The file with variables for a gateway in the background: `NAME=VALUE` lines, as systemd reads them."""

from __future__ import annotations

import re
from pathlib import Path

from pegboard.service.job import ServiceProblem

_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)", re.ASCII)
_QUOTES = ('"', "'")


def read_environment_file(path: Path) -> dict[str, str]:
    """The variables of a file; none if there is no file. A message never has a value in it."""
    try:
        text = path.read_text("utf-8-sig")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as exc:
        raise ServiceProblem(f"{path}: {getattr(exc, 'strerror', None) or 'it is not UTF-8'}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith(("#", ";")):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None:
            raise ServiceProblem(f"{path}:{number}: write NAME=VALUE")
        found[match[1]] = _unquote(match[2])
    return found


def _unquote(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] in _QUOTES and value[0] == value[-1]
    return value[1:-1] if is_quoted else value
