"""Installs the MCP client programs that the tests run.

    python tests/real_clients/install.py [--all]

Claude Code and mcporter are among the packages of the other tests, since every run of the tests has a few with them.
`--all` adds those of this folder, which are large.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

# npm does not run what packages want to do at their installation. These two only put their own program in place.
SCRIPTS = {
    HERE.parent / "node": "@anthropic-ai/claude-code/install.cjs",
    HERE: "opencode-ai/postinstall.mjs",
}


def main() -> None:
    """Install, and let the packages put their programs in place."""
    from node import node

    folders = list(SCRIPTS) if "--all" in sys.argv else [HERE.parent / "node"]
    for folder in folders:
        installer = HERE.parent / "node" / "install.py"
        subprocess.run([sys.executable, str(installer), str(folder)], check=True)
        subprocess.run([str(node()), str(folder / "node_modules" / SCRIPTS[folder])], check=True)


if __name__ == "__main__":
    main()
