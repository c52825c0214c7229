"""`make serve` sets everything up, and says what is happening."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from screen import on_screen

ROOT = Path(__file__).parent.parent
SCRIPT = ROOT / "scripts" / "install.py"
OF_MAKE = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES")
# What pip says, in the order in which it says it.
SAID = """\
Obtaining file:///x
  Installing build dependencies: started
Collecting uvicorn<1,>=0.40 (from pegboard==0.1.0)
  Using cached uvicorn-0.41.0-py3-none-any.whl.metadata (6.5 kB)
Collecting jsonschema-rs>=0.60 (from pegboard==0.1.0)
  Downloading jsonschema_rs-0.60.3-cp310-abi3-manylinux.whl (3.1 MB)
Building wheels for collected packages: pegboard
  Building editable for pegboard (pyproject.toml): started
Installing collected packages: uvicorn, jsonschema-rs, pegboard
Successfully installed uvicorn-0.41.0"""
FAKE = """#!{python}
import sys
print({said!r})
sys.exit({code})
"""


def environment(folder: Path, code: int) -> Path:
    """An environment whose Python says what pip says, and ends with this code."""
    program = folder / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE.format(python=sys.executable, said=SAID, code=code), "utf-8")
    program.chmod(0o755)
    return folder


def words(folder: Path) -> list[str]:
    return [sys.executable, str(SCRIPT), str(folder), "--editable", "."]


def test_each_step_is_one_line_where_nothing_is_a_terminal(tmp_path: Path) -> None:
    """No silence, no list of packages, and no address."""
    done = subprocess.run(words(environment(tmp_path / "v", 0)), capture_output=True, text=True, timeout=60, check=True)
    first, *steps, last = done.stdout.splitlines()
    assert first.startswith(f"Setting up Pegboard in {tmp_path / 'v'}. ")
    assert [step.strip() for step in steps] == [
        "preparing ...",
        "downloading packages ...",
        "building pegboard ...",
        "installing 3 packages ...",
    ]
    assert re.fullmatch(r"  done in \d+ s", last)


def test_a_terminal_has_one_line_that_changes(tmp_path: Path) -> None:
    """With the package that is on its way; it is gone in the end."""
    with on_screen(words(environment(tmp_path / "v", 0))) as screen:
        code, _ = screen.finish()
    assert code == 0
    assert "\r\x1b[K  downloading packages: 2 (jsonschema-rs) ..." in screen.raw
    assert screen.raw.count("\n") == 2
    assert re.search(r"\r\x1b\[K  done in \d+ s", screen.raw)


def test_a_failure_shows_what_pip_said(tmp_path: Path) -> None:
    """And says that it failed, with exit code 1."""
    done = subprocess.run(
        words(environment(tmp_path / "v", 2)), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "Successfully installed uvicorn-0.41.0" in done.stdout
    assert done.stderr == "pegboard: pip could not install Pegboard: what it said last stands above\n"


def test_a_new_environment_is_made(tmp_path: Path) -> None:
    """Where there is none; a real one, in which pip is there."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path / "v"), "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert f"making a Python environment in {tmp_path / 'v'} ..." in done.stdout
    assert (tmp_path / "v" / "bin" / "python").exists()


def test_an_old_python_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is made."""
    space: dict[str, object] = {"__name__": "install", "__doc__": "x"}
    exec(compile(SCRIPT.read_text("utf-8"), str(SCRIPT), "exec"), space)
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    monkeypatch.setattr(sys, "argv", ["install.py", str(tmp_path / "v")])
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    main = space["main"]
    assert callable(main)
    with pytest.raises(SystemExit, match=r"Python 3\.11 or newer is needed, and .* is 3\.9"):
        main()
    assert not (tmp_path / "v").exists()


def test_make_serve_runs_it() -> None:
    """Before the gateway, and only once."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "serve", "ARGS="],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=ROOT,
        # Under `make test` it would be a part of that run: it says which folder it enters and leaves.
        env={name: value for name, value in os.environ.items() if name not in OF_MAKE},
    )
    assert "scripts/install.py .venv --constraint constraints.txt --editable ." in done.stdout
    assert done.stdout.rstrip().endswith(".venv/bin/pegboard serve")
