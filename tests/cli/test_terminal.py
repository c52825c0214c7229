"""Nothing that a server, a config file, a memory, a task or a chat says steers the terminal it is shown on."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness import toy, write_config
from pegboard.terminal import plain, plain_json

# A title, the clipboard, a link, blinking, cursor movements, C1, other line ends, turned and hidden letters, markup.
EVIL = (
    "\x1b]0;owned\x07\x1b]52;c;aGk=\x07\x1b]8;;http://evil\x1b\\x\x1b[5;35m\x1b[3J\x9b2J\x85\r\b\x7f"
    "\u202eabc\u2066\u200b\u00ad\ufeff\u2028\u2029\U000e0041 [/x] [bold] :bug:"
)
# Colours are ours; on stderr, so is a progress bar.
_OURS = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r")
_UNSEEN = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
# Runs one command after another in one process, whose start takes longer than all of them.
_DRIVER = """
import json, sys
from pegboard.cli.app import app
for command in json.loads(sys.argv[1]):
    print("@@", command[0], flush=True)
    try:
        app(command)
    except SystemExit:
        sys.stdout.flush()
"""


def on_terminal(commands: list[list[str]], cwd: Path) -> tuple[str, str]:
    """What these commands write to a terminal: on stdout, and on stderr."""
    pipes = [pty.openpty() for _ in range(2)]
    written = [b"", b""]

    def read(at: int) -> None:
        try:
            while piece := os.read(pipes[at][0], 65536):
                written[at] += piece
        except OSError:
            # The other end is closed.
            return

    process = subprocess.Popen(
        [sys.executable, "-c", _DRIVER, json.dumps(commands)],
        stdin=subprocess.DEVNULL,
        stdout=pipes[0][1],
        stderr=pipes[1][1],
        cwd=cwd,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"},
    )
    for _, end in pipes:
        os.close(end)
    readers = [threading.Thread(target=read, args=(at,)) for at in range(2)]
    for reader in readers:
        reader.start()
    process.wait(110)
    for reader in readers:
        reader.join(10)
    for end, _ in pipes:
        os.close(end)
    out, err = (text.decode().replace("\r\n", "\n") for text in written)
    return out, err


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a config, chats and tasks that say evil things in every place."""
    schema = {"type": "object", "description": EVIL, "properties": {f"p{EVIL}": {"description": EVIL}}}
    tools: list[Any] = [
        {"name": "evil", "title": EVIL, "description": f"needle {EVIL}", "inputSchema": schema},
        {"name": f"odd{EVIL}", "description": EVIL, "inputSchema": {"type": "object"}},
        {"name": f"bad{EVIL}", "inputSchema": {"type": EVIL}},
    ]
    results = {"evil": {"content": [{"type": "text", "text": EVIL}, {"type": EVIL, "mimeType": EVIL}], "isError": True}}
    dies = ["-I", "-S", "-c", f"import sys; sys.stderr.write({EVIL!r}); sys.exit(1)"]
    servers = {
        "one": toy(raw_tools=tools, results=results, instructions=EVIL),
        "structured": toy(results={"x": {"content": [], "structuredContent": {EVIL: EVIL}}}, tools=["x"]),
        "dies": {"command": sys.executable, "args": dies},
        "fails": toy(list_fails=EVIL),
        f"Odd{EVIL}": {"command": "x", "type": EVIL},
        "missing": {"command": f"no-such{EVIL}"},
    }
    write_config(tmp_path / "pegboard.json", servers, toolsets=["memory", "tasks", "chats", "discovery"])
    change = tmp_path / "openspec" / "changes" / "add-x"
    change.mkdir(parents=True)
    (change / "tasks.md").write_text(f"## 1. A {EVIL}\n- [ ] 1.1 do {EVIL}\n- [ ] 1.2 then {EVIL}\n", "utf-8")
    (change / "proposal.md").write_text(f"# {EVIL}\n", "utf-8")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    log = tmp_path / "home" / ".claude" / "projects" / "-x" / "ab-one.jsonl"
    log.parent.mkdir(parents=True)
    asked = {
        "type": "user",
        "uuid": "1",
        "sessionId": "ab-one",
        "cwd": f"/x{EVIL}",
        "timestamp": "2026-01-01T00:00:00Z",
    }
    answer = {**asked, "type": "assistant", "uuid": "2", "parentUuid": "1"}
    lines = [
        {**asked, "message": {"role": "user", "content": f"needle {EVIL} [link](http://evil)"}},
        {**answer, "message": {"role": "assistant", "content": [{"type": "text", "text": f"needle {EVIL}"}]}},
    ]
    log.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return tmp_path


def test_no_command_lets_others_steer_the_terminal(hostile: Path) -> None:
    """Every command shows every text of others without what steers a terminal, and none ends in a traceback."""
    config = ["--config", str(hostile / "pegboard.json")]
    memory = {"key": "a", "summary": f"needle {EVIL}", "text": EVIL, "links": [{"key": f"b{EVIL[1:4]}"}]}
    arguments = json.dumps(memory)
    looks = [
        *(["refresh"], ["tools"], ["tools", "--json"], ["find", "needle"], ["find", "needle", "--json"]),
        *(["describe", "one__evil"], ["call", "one__evil"], ["call", "one__evil", "--json"], ["call", "structured__x"]),
        *(["call", f"one__{EVIL[:3]}"], ["servers"], ["servers", "--json"], ["doctor"], ["doctor", "--json"]),
        *(
            ["call", "memory_add", arguments],
            ["memory", "list"],
            ["memory", "get", "a"],
            ["memory", "search", "needle"],
        ),
        *(["memory", "export"], ["memory", "add", "b", "--text", EVIL.replace("\x00", "")], ["memory", "linked", "a"]),
        *(["tasks", "list"], ["tasks", "next"], ["tasks", "sync"], ["tasks", "done", "add-x/1"], ["tasks", "graph"]),
        *(["chats", "list"], ["chats", "show"], ["chats", "search", "needle"], ["chats", "export", "ab-one"]),
        ["add", "new", "--", sys.executable, "-I", "-S", "-c", f"import sys; sys.exit({EVIL!r})"],
        ["add", "url", f"http://127.0.0.1:9/{EVIL}"],
    ]
    out, err = on_terminal([[*command[:2], *config, *command[2:]] for command in looks], hostile)
    assert "Traceback" not in out + err
    assert out.count("@@") == len(looks)
    assert "owned" in out
    assert "\x1b[5;35m" not in out + err
    for text in (out, err):
        assert {hex(ord(each)) for each in _UNSEEN.findall(_OURS.sub("", text))} == set()
    assert "\r" not in out.replace("\r\n", "")


@given(st.text())
def test_json_is_exact_and_harmless(text: str) -> None:
    """What is left out of a text is an escape in JSON, which means the same."""
    shown = plain_json(json.dumps({text: [text]}, ensure_ascii=False))
    assert json.loads(shown) == {text: [text]}
    assert plain(shown) == shown


# Python takes these for printable: joiners, fillers and variation selectors, which have no looks of their own.
INVISIBLE = frozenset(
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0" + "".join(map(chr, range(0xE0100, 0xE01F0)))
)


@example("\u034f")
@given(st.text())
def test_plain_text_stays(text: str) -> None:
    """Whatever can be seen is still there, and making it plain twice changes nothing."""
    assert plain(plain(text)) == plain(text)
    seen = [each for each in text if each.isprintable() and each not in INVISIBLE]
    assert seen == [each for each in plain(text) if each.isprintable()]
