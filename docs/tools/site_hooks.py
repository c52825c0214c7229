"""What the site needs beyond the files of docs/: pages of the folder above, and pictures instead of Mermaid's source.

MkDocs calls the functions of this module by their names.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
# Files above docs/ that pages link to, and where the site has them.
OUTSIDE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "LICENSE": "license.txt",
    "compose.yaml": "files/compose.yaml",
    "Dockerfile": "files/Dockerfile",
    "examples/anthropic_loop.py": "files/anthropic_loop.py",
    "examples/openai_loop.py": "files/openai_loop.py",
}
_LINK = re.compile(r"(\]\()([^)#\s:]+)(#[^)\s]*)?(\))")
_MERMAID = re.compile(r"^```mermaid\n.*?^```$", re.MULTILINE | re.DOTALL)


def on_files(files: Any, config: Any) -> Any:
    """Add the files of the folder above docs/."""
    for source, place in OUTSIDE.items():
        if (ROOT / source).is_file():
            files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """The text of a page with links that hold in the site."""
    place: str = page.file.src_uri
    home = next((posixpath.dirname(source) for source, at in OUTSIDE.items() if at == place), None)
    folder = home if home is not None else posixpath.join("docs", posixpath.dirname(place))
    text = _LINK.sub(lambda link: link[1] + site_address(link[2], folder, place) + (link[3] or "") + link[4], markdown)
    return _MERMAID.sub(f"![The picture of this page](pictures/{Path(place).stem}.svg)", text)


def site_address(target: str, folder: str, place: str) -> str:
    """Where the site has the file that a page of this folder links to, seen from the page's place in the site."""
    path = posixpath.normpath(posixpath.join(folder, target))
    inside = OUTSIDE.get(path) or (path.removeprefix("docs/") if path.startswith("docs/") else None)
    return target if inside is None else posixpath.relpath(inside, posixpath.dirname(place) or ".")
