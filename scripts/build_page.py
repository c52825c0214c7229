"""Makes the files that browsers load, in page/static, from the modules in page/modules.

    python scripts/build_page.py            # or: make page
    python scripts/build_page.py FOLDER     # somewhere else, to compare

The modules that a page loads become one file without comments, spaces and long local names. Templates are shortened
before: the htm library reads `</>` as the end of any element, and values without quotes, and parts/html.js classes
behind a tag's name. The result is committed, so a wheel is built without Node.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "src/pegboard/gateway/page"
MODULES = PAGE / "modules"
ESBUILD = ROOT / "tests/page/node_modules/esbuild/bin/esbuild"
# What a page names; everything else is in one of these.
ENTRIES = ("app.js", "app.css")
OPTIONS = ("--bundle", "--format=esm", "--minify", "--charset=utf8", "--target=es2023", "--log-level=warning")
# What browsers have under these names gets a short one of its own.
_GLOBALS = {
    "globalThis": (
        *("AbortController", "Boolean", "Date", "HTMLElement", "Map", "Number", "Set", "String", "addEventListener"),
        *("clearTimeout", "decodeURIComponent", "document", "encodeURIComponent", "history", "location", "performance"),
        *("removeEventListener", "requestAnimationFrame", "setTimeout", "undefined"),
    ),
    "Array": ("isArray",),
    "JSON": ("parse", "stringify"),
    "Math": ("cos", "hypot", "max", "min", "round", "sin"),
    "Object": ("assign", "create", "entries", "fromEntries", "keys"),
}
_COPIED = {".html", ".svg"}
_END_OF_ELEMENT = re.compile(r"</(?:/|[a-z][a-z0-9]*)>")
# `<p class="faint">` is `<p.faint>`.
_CLASSES = re.compile(r'(?<=[>`\s}]<)([a-z][a-z0-9]*) class="([\w -]+)"')
# In a template, where there is no space around the sign; in code there is.
_QUOTED = re.compile(r'(?<=[ \n])([a-zA-Z][\w-]*)="([\w-]+)"(?=[ \n>])')
# Between elements and values, where htm reads nothing; other texts of several lines keep theirs.
_INDENTATION = re.compile(r"(?<=[>}`])\n[ \t]+(?=[<$])| (?=/>)")
# Between an element's properties, where one space is as good; in code there is one before the sign, too.
_LINES_OF_TAG = re.compile(r"\n[ \t]+(?=[\w-]+=[\"$])")
# A function, from its head to the brace that closes it.
_FUNCTION = re.compile(
    r"^( *)(export )?(default )?(async )?function (\w+)(\([^\n]*\)) \{\n(.*?)^\1\}$", re.MULTILINE | re.DOTALL
)
_PROPERTY = re.compile(r"--[a-z][a-z-]*")
sys.path.insert(0, str(ROOT / "tests"))


def build(folder: Path) -> None:
    """Write every file anew, into an empty folder."""
    from node import node

    if not ESBUILD.exists():
        sys.exit("esbuild is missing: run `make set-up`")
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / "modules"
        shutil.copytree(MODULES, copy)
        for path in copy.rglob("*.js"):
            if path.parent.name != "vendor":
                path.write_text(shorten_functions(shorten_templates(path.read_text("utf-8"))), "utf-8")
        # It is a program, or a script that needs Node, as npm was allowed to install it.
        found = f"{node().parent}{os.pathsep}{os.environ.get('PATH', '')}"
        (copy / "globals.js").write_text(
            "".join(
                f"export const {{ {', '.join(f'{name}: {owner}_{name}' for name in names)} }} = {owner};"
                for owner, names in _GLOBALS.items()
            )
        )
        defines = [
            f"--define:{name if owner == 'globalThis' else f'{owner}.{name}'}={owner}_{name}"
            for owner, names in _GLOBALS.items()
            for name in names
        ]
        command = [str(ESBUILD), *ENTRIES, *OPTIONS, "--inject:globals.js", *defines, f"--outdir={folder.resolve()}"]
        subprocess.run(command, check=True, cwd=copy, env={**os.environ, "PATH": found})  # noqa: S603
    style = folder / "app.css"
    style.write_text(shorten_properties(style.read_text("utf-8")), "utf-8")
    for path in MODULES.iterdir():
        if path.suffix in _COPIED:
            shutil.copyfile(path, folder / path.name)


def shorten_properties(style: str) -> str:
    """The same style with numbers for the names of its own properties, which no module uses."""
    numbers: dict[str, str] = {}
    return _PROPERTY.sub(lambda name: numbers.setdefault(name.group(), f"--{len(numbers)}"), style)


def shorten_templates(text: str) -> str:
    """The same module with shorter templates."""
    named = _CLASSES.sub(lambda tag: ".".join([tag[1], *tag[2].split()]), _END_OF_ELEMENT.sub("</>", text))
    return _LINES_OF_TAG.sub(" ", _INDENTATION.sub("", _QUOTED.sub(r"\1=\2", named)))


def shorten_functions(text: str) -> str:
    """The same with arrows for functions, also within one: nothing calls one of them before it is read."""

    def shorten(found: re.Match[str]) -> str:
        _, export, default, is_async, name, parameters, body = (group or "" for group in found.groups())
        begin, end = ("", f"\nexport default {name};") if default else (export, "")
        return f"{begin}const {name} = {is_async}{parameters} => {{\n{shorten_functions(body)}}};{end}"

    return _FUNCTION.sub(shorten, text)


if __name__ == "__main__":
    build(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE / "static")
