"""What of a text can be kept.

PostgreSQL knows no NUL in a text, SQLite's own functions stop at one, and neither can keep half a surrogate pair. Each
becomes U+FFFD, on both, so that what is kept does not depend on where. JSON escapes NUL, so nothing is lost there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pegboard.storage.database import Value

_UNKEEPABLE = re.compile("[\0\ud800-\udfff]")


def storable_text(text: str) -> str:
    """The text as it will come back."""
    # Most texts are ASCII, and there it is a hundred times quicker.
    if text.isascii():
        return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return _UNKEEPABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def storable(params: Sequence[Value]) -> tuple[Value, ...]:
    """The values of a statement as they can be kept."""
    return tuple(storable_text(value) if isinstance(value, str) else value for value in params)
