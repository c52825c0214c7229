"""Docstrings: the summary, and what is said of each parameter, in the manner of Google, NumPy or Sphinx."""

from __future__ import annotations

import inspect
import re

_SECTION = re.compile(
    r"^(?:(?:Args|Arguments|Parameters|Params|Returns?|Yields?|Raises|Examples?|Notes?|See Also)\s*:?\s*$|:\w+)",
    re.MULTILINE,
)
_SPHINX = re.compile(r"^:param\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_GOOGLE = re.compile(r"^(?:Args|Arguments|Parameters|Params)\s*:\s*\n((?:[ \t]+.*\n?|\s*\n)+)", re.MULTILINE)
_GOOGLE_ENTRY = re.compile(r"^(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*(?:\n[ \t]+.*)*)", re.MULTILINE)
_NUMPY = re.compile(r"^Parameters\s*\n-{3,}\s*\n((?:.*\n?)*?)(?=^\S.*\n-{3,}|\Z)", re.MULTILINE)
_NUMPY_ENTRY = re.compile(r"^(\w+)[^\n]*\n((?:[ \t]+.*\n?)+)", re.MULTILINE)


def summary(doc: str) -> str:
    """A docstring up to its first section."""
    text = inspect.cleandoc(doc)
    section = _SECTION.search(text)
    return (text[: section.start()] if section else text).strip()


def parameters(doc: str) -> dict[str, str]:
    """What a docstring says of each parameter, in the manner of Google, NumPy or Sphinx."""
    text = inspect.cleandoc(doc) + "\n"
    entries = [(found[1], found[2]) for found in _SPHINX.finditer(text)]
    if google := _GOOGLE.search(text):
        entries += [(found[1], found[2]) for found in _GOOGLE_ENTRY.finditer(inspect.cleandoc("\n" + google[1]))]
    if numpy := _NUMPY.search(text):
        entries += [(found[1], found[2]) for found in _NUMPY_ENTRY.finditer(numpy[1])]
    return {name: " ".join(said.split()) for name, said in entries if said.strip()}
