"""Texts with blanks to be filled in, and how a filled one is written into the config.

The config replaces `${VAR}` by a value of the environment. A stranger's text must not reach it like that: what it says
is escaped, and only references that we make ourselves, or that the user gave, are left as they are.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pegboard.terminal import plain

_BLANK = re.compile(r"\{([A-Za-z_][\w.-]{0,99})\}", re.ASCII)
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class UnusableText(ValueError):  # noqa: N818  it says what the text is
    """A text that cannot be shown or written as it is; the message says why."""


@dataclass(frozen=True, slots=True)
class Blank:
    """A place in a text for the answer to the question of this key."""

    key: str


Template = tuple[str | Blank, ...]


@dataclass(frozen=True, slots=True)
class VariableReference:
    """`${VAR}` as the config reads it."""

    text: str


def parse_template(text: str, variables: Collection[str] | None = None) -> Template:
    """A text with `{name}` for its blanks: those that are declared, or all of them where nothing is."""
    parts: list[str | Blank] = []
    end = 0
    for found in _BLANK.finditer(text):
        if variables is None or found[1] in variables:
            parts += text[end : found.start()], Blank(found[1])
            end = found.end()
    return tuple(part for part in (*parts, text[end:]) if part != "")


def blanks_of(template: Template) -> list[str]:
    """The keys of its blanks."""
    return [part.key for part in template if isinstance(part, Blank)]


def is_reference(text: str) -> bool:
    """Whether a user's text takes something from the environment."""
    return _REFERENCE.search(text) is not None


def join(parts: Sequence[str | VariableReference]) -> str:
    """The text for the config: everything but references means itself."""
    written = ""
    for part in _merge(parts):
        if isinstance(part, VariableReference):
            if written.endswith("$") and part.text.startswith("$"):
                raise UnusableText("a $ directly before a variable cannot be written into the config")
            written += part.text
        else:
            written += escape(part)
    return written


def escape(text: str) -> str:
    """A text in which no variable of the environment is filled in."""
    return _REFERENCE.sub(lambda found: f"${found.group()}", text)


def check_visible(text: str, where: str) -> None:
    """Refuse what a person would not see on the screen: what is shown has to be what runs."""
    if _CONTROL.search(text) or plain(text) != text:
        raise UnusableText(f"{where} has characters that cannot be seen")


def _merge(parts: Iterable[str | VariableReference]) -> Iterator[str | VariableReference]:
    """Neighbours as one text: `$` and `{VAR}` from two places would be a variable together."""
    texts: list[str] = []
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        else:
            yield from ("".join(texts), part)
            texts = []
    yield "".join(texts)
