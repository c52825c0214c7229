"""The machine of a new user: a home folder with clients and their servers, and `pegboard` on the PATH."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import socket
import string
import subprocess
import sys
from pathlib import Path

from docpages.pages import ROOT
from docpages.terminal import Terminal

# What the pages show instead of the real one; as long as it, so that tables keep their widths.
HOME = "/home/ada"
PORT = 7420
CLAUDE_CODE = {
    "numStartups": 12,
    "mcpServers": {
        "git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git", "--repository", "~/shop"]},
        "fetch": {"type": "stdio", "command": "uvx", "args": ["mcp-server-fetch"]},
    },
}
CURSOR = {"mcpServers": {"fetch": {"command": "uvx", "args": ["mcp-server-fetch"]}}}
# What is said only because the port is not the usual one.
OTHER_PORT = re.compile(r"^The gateway has to listen on this port each time:.*(\n|$)", re.MULTILINE)
# `uvx PACKAGE` without a network: the packages are in this environment.
UVX = """#!/bin/sh
module=$(echo "$1" | tr - _); shift
test "$module" = mcp_server_time && set -- --local-timezone UTC "$@"
exec "{python}" -m "$module" "$@"
"""


class Newcomer:
    """A user with nothing of Pegboard yet; to be closed."""

    def __init__(self) -> None:
        self.home = _short_folder(len(HOME))
        self.port = _free_port()
        self._running: list[Terminal] = []
        self._write(".claude.json", json.dumps(CLAUDE_CODE, indent=2) + "\n")
        self._write(".cursor/mcp.json", json.dumps(CURSOR, indent=2) + "\n")
        self._write(".local/bin/uvx", UVX.format(python=sys.executable)).chmod(0o755)
        (self.home / ".local/bin/pegboard").symlink_to(Path(sys.executable).with_name("pegboard"))
        self._make_repository()

    @property
    def env(self) -> dict[str, str]:
        """What a shell of the user has."""
        path = f"{self.home}/.local/bin:/usr/local/bin:/usr/bin:/bin"
        own = {"HOME": str(self.home), "PATH": path, "USER": "ada", "TZ": "UTC", "LANG": "C.UTF-8"}
        return {**own, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore"}

    def run(self, command: str, columns: int = 80) -> Terminal:
        """A command that has ended."""
        terminal = self._open(command, columns)
        terminal.run()
        return terminal

    def start(self, command: str, wanted: str) -> Terminal:
        """A command that stays, once it has said these words."""
        terminal = self._open(command, 80)
        self._running.append(terminal)
        terminal.wait_for(wanted)
        return terminal

    def close(self) -> None:
        """End what runs, and leave nothing behind."""
        for terminal in self._running:
            terminal.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def shown(self, text: str) -> str:
        """A text as it would be on any machine: without this one's folders, port and clock."""
        text = OTHER_PORT.sub("", text).replace(str(self.home), HOME).replace(str(self.port), str(PORT))
        text = re.sub(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(\.\d+)?", r"2026-01-31\g<1>12:00:00", text)
        text = re.sub(r"\b\d\d:\d\d:\d\d\b", "12:00:00", text)
        return re.sub(r"(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day", "Saturday", text)

    def _open(self, command: str, columns: int) -> Terminal:
        words = re.sub(r"pegboard serve(?!\w)", f"pegboard serve --port {self.port}", command)
        return Terminal(["/bin/sh", "-c", f"exec {words}"], self.env, self.home / "shop", columns)

    def _write(self, name: str, text: str) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def _make_repository(self) -> None:
        subprocess.run(["git", "init", "-q", str(self.home / "shop")], check=True, env={**os.environ, **self.env})


def comparable(text: str) -> str:
    """What has to be the same in each run: widths of columns and durations are not."""
    text = re.sub(r"\d+ (s|min) ago\b", "9 s ago", text)
    text = re.sub(r"\d[\d,.]* ?(ms|MB)\b", r"9 \1", text)
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def _short_folder(length: int) -> Path:
    while True:
        name = "".join(random.choices(string.ascii_lowercase, k=length - len("/tmp/")))
        folder = Path("/tmp") / name
        if not folder.exists():
            folder.mkdir(mode=0o700)
            return folder


def _free_port() -> int:
    """One with four digits, as the usual one has."""
    while True:
        port = random.randrange(8100, 9900)
        with socket.socket() as listener:
            if listener.connect_ex(("127.0.0.1", port)) != 0:
                return port
