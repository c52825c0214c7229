"""Pictures of the page, screen by screen, light and dark, at a gateway that somebody has used for a while."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal

from playwright.sync_api import Browser, Page, expect

from docpages.newcomer import HOME, PORT, Newcomer
from pins.shifting import ShiftingServer, tool
from screenshots.diagram import PICTURES
from screenshots.small_png import shrink

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTH, HEIGHT = 1280, 860
# The screens: the name of the picture, and the address. What is not there is left out.
SCREENS = {
    "overview": "",
    "servers": "servers",
    "server": "servers/git",
    "add": "add?way=paste",
    "tools": "tools",
    "tool": "tools/time__convert_time",
    "calls": "calls",
    "numbers": "calls?tab=numbers",
    "changes": "changes/issues",
    "memory": "memory",
    "memory-graph": "memory/deploy",
    "chats": "chats",
    "tasks": "tasks",
    "clients": "clients",
    "sign-ins": "sign-ins",
    "access": "access",
}
SNIPPET = '{"mcpServers": {"sqlite": {"command": "uvx", "args": ["mcp-server-sqlite", "--db-path", "shop.db"]}}}'
MEMORIES = (
    "deploy --summary 'How the shop is deployed' --text 'Tag a commit of main; the pipeline does the rest.'",
    "staging --summary Staging --text 'It runs the newest main, with the data of last night.' --link deploy",
    "rollback --summary 'Going back' --text 'Deploy the tag before. Migrations only add.' --link deploy",
    "payments --summary 'Who knows them' --text 'Ada wrote the payments; ask her before a change.'",
)
# What was done before somebody looks.
COMMANDS = (
    "pegboard call git__git_status repo_path=.",
    "pegboard call git__git_log repo_path=. max_count=3",
    "pegboard call git__git_branch repo_path=. branch_type=local",
    "pegboard call time__get_current_time timezone=Europe/Vienna",
    "pegboard call time__convert_time source_timezone=UTC time=12:00 target_timezone=Asia/Tokyo",
    "pegboard call time__get_current_time timezone=Mars/Olympus",
    "pegboard call git__git_show repo_path=. revision=main",
    *(f"pegboard memory add {words}" for words in MEMORIES),
    "pegboard token add laptop",
    "pegboard token add ci --server git --read-only --expires 30d",
    "pegboard token add team --deny 'git__git_reset' --rate 60/m",
)
PROPOSAL = "# Change: gift cards\n\n## Why\nCustomers ask for them before every holiday.\n"
TASKS = """# Tasks

## 1. Model
- [x] 1.1 A table of gift cards
- [x] 1.2 A code that nobody guesses
- [ ] 1.3 Expiry after three years

## 2. Shop
- [ ] 2.1 Buy a card
- [ ] 2.2 Pay with one <!-- depends: 1.3 -->
"""
TALK = (
    ("user", "Why does the checkout take four seconds?"),
    ("assistant", "The cart asks for stock once per item. One query for all items takes 40 ms."),
    ("user", "Do that, please."),
    ("assistant", "Done: `stock_of(items)` asks once. The checkout takes 0.6 s now."),
)
# What the address of the server that wants a sign-in is shown as.
TRACKER = "https://mcp.example.com/mcp"
# The machine that the pictures were made on is nobody's business.
RENAME = """
(names) => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode())
    for (const [before, after] of names) node.data = node.data.replaceAll(before, after);
}
"""


def furnish(newcomer: Newcomer, tracker: str) -> None:
    """What a gateway has after some days: a repository with a change, a dialog, calls, memories, tokens, and a server
    at this address that wants a sign-in."""
    shop = newcomer.home / "shop"
    change = shop / "openspec/changes/gift-cards"
    change.mkdir(parents=True, exist_ok=True)
    (change / "proposal.md").write_text(PROPOSAL, "utf-8")
    (change / "tasks.md").write_text(TASKS, "utf-8")
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for words in (("add", "."), (*who, "commit", "-qm", "Plan gift cards"), ("branch", "-M", "main")):
        subprocess.run(["git", "-C", str(shop), *words], check=True, env=newcomer.env)
    _write_talk(newcomer)
    for command in COMMANDS:
        newcomer.run(command)
    # Without a terminal, it says how to sign in and does not wait.
    newcomer.run(f"pegboard add tracker {tracker} < /dev/null")
    _change_definitions(newcomer)


def _change_definitions(newcomer: Newcomer) -> None:
    """A server whose tool says something else since an update."""
    server = ShiftingServer(newcomer.home / "said.json")
    create = tool("create_issue", "Creates an issue in a project.", title={"type": "string"})
    server.say(create, tool("close_issue", "Closes an issue."), version="1.4.0")
    newcomer.run(f"pegboard add issues -- {shlex.join([server.entry['command'], *server.entry['args']])}")
    server.say(
        {**create, "description": "Creates an issue in a project, and tells its watchers."},
        {**tool("close_issue", "Closes an issue."), "annotations": {"destructiveHint": False}},
        version="1.5.0",
    )
    for command in ("disable", "enable", "refresh"):
        newcomer.run(f"pegboard {command} issues")


def _write_talk(newcomer: Newcomer) -> None:
    """A dialog as Claude Code keeps it."""
    shop = newcomer.home / "shop"
    folder = newcomer.home / ".claude/projects" / str(shop).replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    session = "5f0c1c0e-4f3e-4a47-9f57-0a4c2b9f4a11"
    start = datetime.now(UTC) - timedelta(hours=2)
    lines = [
        {
            "type": role,
            "uuid": f"{session[:-2]}{number:02}",
            "parentUuid": f"{session[:-2]}{number - 1:02}" if number else None,
            "sessionId": session,
            "cwd": str(shop),
            "timestamp": (start + timedelta(minutes=number)).isoformat().replace("+00:00", "Z"),
            "message": {"role": role, "content": [{"type": "text", "text": text}]},
        }
        for number, (role, text) in enumerate(TALK)
    ]
    (folder / f"{session}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", "utf-8")


def names() -> Iterator[tuple[str, str, Scheme]]:
    """Each picture's name, the address of its screen, and its colours."""
    for name, address in SCREENS.items():
        for scheme in SCHEMES:
            yield f"page-{name}-{scheme}", address, scheme


def photograph(chromium: Browser, newcomer: Newcomer, tracker: str, name: str, address: str, scheme: Scheme) -> None:
    """A picture of one screen, if there is one."""
    page = chromium.new_page(
        viewport={"width": WIDTH, "height": HEIGHT}, color_scheme=scheme, reduced_motion="reduce", locale="en-GB"
    )
    page.goto(f"http://127.0.0.1:{newcomer.port}/#/{address}")
    page.locator("main h1").wait_for()
    if page.get_by_text("The screen could not be loaded.").count() == 0:
        _settle(page, address)
        page.evaluate(RENAME, [[str(newcomer.home), HOME], [str(newcomer.port), str(PORT)], [tracker, TRACKER]])
        png = page.screenshot()
        # A page without the gateway's policy, which lets nobody read pictures.
        page.goto("about:blank")
        (PICTURES / f"{name}.png").write_bytes(shrink(page, png))
    page.close()


def _settle(page: Page, address: str) -> None:
    """Wait until everything is there that a screen reads."""
    if address.startswith("add"):
        page.get_by_label("A snippet of any client or README").fill(SNIPPET)
        expect(page.get_by_role("button", name="Add 1 server")).to_be_enabled()
    expect(page.get_by_text("Reading …")).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    page.wait_for_timeout(400)
