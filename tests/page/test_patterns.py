"""Patterns of the config as the page reads and writes them: those of Python's fnmatch, as the gateway reads them."""

from __future__ import annotations

import json
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import pegboard
from node import node

MODULE = Path(pegboard.__file__).parent / "gateway/page/modules/parts/tool_patterns.js"
NAMES = [
    "a",
    "b",
    "ab",
    "abc",
    "a[b]",
    "[",
    "]",
    "[!",
    "a]c",
    "*",
    "?",
    "a*",
    "a-",
    "^",
    "!a",
    "\\",
    "ü",
    "𝄞",
    "",
    "a\nb",
]
PATTERNS = [
    *("*", "?", "a*", "*b", "*b*c", "a?", "??", "[ab]", "[!ab]", "[a-c]b", "[c-a]", "[]]", "[!]]", "[[]", "[*]", "[?]"),
    *(
        "a[b]",
        "a[[]b]",
        "[",
        "[!",
        "[]",
        "[!]",
        "a]c",
        "[^a]",
        "[\\]",
        "[a-]",
        "a[-]",
        "",
        "**",
        "[!a]*",
        "a[!b]c",
        "𝄞",
    ),
    *("[𝄞ü]", "a.b", "a*b", "(a|b)", "a+", "[a!]"),
]
PROGRAM = """
import {{ exactly, means }} from {module};
const [patterns, names] = JSON.parse(process.argv[1]);
console.log(JSON.stringify([names.map(exactly), patterns.map((pattern) => names.map((name) => means(pattern, name)))]));
"""


def test_a_pattern_means_what_it_means_to_the_gateway() -> None:
    """Whatever stands in it; and the pattern of a name means that name alone."""
    program = PROGRAM.format(module=json.dumps(MODULE.as_uri()))
    words = [str(node()), "--input-type=module", "-e", program, json.dumps([PATTERNS, NAMES])]
    exact, found = json.loads(subprocess.run(words, capture_output=True, text=True, check=True, timeout=60).stdout)
    assert found == [[fnmatchcase(name, pattern) for name in NAMES] for pattern in PATTERNS]
    assert [[name for name in NAMES if fnmatchcase(name, pattern)] for pattern in exact] == [[name] for name in NAMES]
