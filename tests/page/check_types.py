"""Checks the types of the page's modules, which are written as comments (JSDoc).

python tests/page/check_types.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))


def main() -> None:
    """Run TypeScript's compiler, which writes nothing."""
    from node import node

    compiler = HERE / "node_modules/typescript/bin/tsc"
    sys.exit(subprocess.run([node(), compiler, "--project", HERE], check=False).returncode)


if __name__ == "__main__":
    main()
