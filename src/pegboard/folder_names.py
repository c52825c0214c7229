"""Names of folders: whether one leads beyond this machine's own files."""

from __future__ import annotations

import re

# `\\server\share`, `\\.\device`, `\\?\…` and `\??\…`, with slashes of either kind, as Windows takes them.
_ELSEWHERE = re.compile(r"[\\/](?:[\\/]|\?\?[\\/])")


def leads_elsewhere(folder: str) -> bool:
    """Whether this is another machine's folder or a device: to look into it would make Windows sign in there. It is the
    same on every system, so that an address means the same."""
    return _ELSEWHERE.match(folder.strip()) is not None
