"""Files of clients stay whole, whatever happens: crashes, two at once, links, rights, others' changes, bad content."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from client_configs.places import context_of
from pegboard.client_configs.context import InstallOptions
from pegboard.client_configs.document import ClientFileError
from pegboard.client_configs.file_change import MAX_BYTES
from pegboard.client_configs.install import apply_install, plan_install
from pegboard.client_configs.table import find_client
from pegboard.client_configs.uninstall import apply_uninstall, plan_uninstall

CURSOR = find_client("cursor")
HERE = Path(__file__).parent
CONTENT = b'{\r\n  "mcpServers": {\r\n    "mine": {"command": "x"}\r\n  }\r\n}'

INSTALL = """
import sys
from pathlib import Path
from client_configs.places import context_of
from pegboard.client_configs.context import InstallOptions
from pegboard.client_configs.document import ClientFileError
from pegboard.client_configs.install import apply_install, plan_install
from pegboard.client_configs.table import find_client

context = context_of(Path(sys.argv[1]))
"""


def cursor_file(tmp_path: Path, content: bytes | None = CONTENT) -> Path:
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    if content is not None:
        file.write_bytes(content)
    return file


def script(text: str, *args: str) -> subprocess.Popen[bytes]:
    path = os.pathsep.join([str(HERE.parent), *sys.path])
    return subprocess.Popen([sys.executable, "-c", INSTALL + text, *args], env={**os.environ, "PYTHONPATH": path})


@pytest.mark.scenario("first hour: A client's file is whole, whatever happens")
@pytest.mark.parametrize("moment", ["Path.replace", "os.fsync", "os.chown"])
def test_a_crash_before_the_file_is_in_place_leaves_the_old_one(tmp_path: Path, moment: str) -> None:
    """Killed between writing and renaming: the file is as it was, and the next install works."""
    file = cursor_file(tmp_path)
    code = f"""
import os, signal
{moment} = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
apply_install(plan_install(find_client("cursor"), context, InstallOptions()), context)
"""
    assert script(code, str(tmp_path)).wait(60) == -9
    assert file.read_bytes() == CONTENT
    context = context_of(tmp_path)
    assert plan_uninstall(CURSOR, context).change is None
    apply_install(plan_install(CURSOR, context, InstallOptions()), context)
    apply_uninstall(plan_uninstall(CURSOR, context), context)
    assert file.read_bytes() == CONTENT


@pytest.mark.scenario("first hour: A client's file is whole, whatever happens")
def test_of_two_installs_at_once_neither_is_lost_unsaid(tmp_path: Path) -> None:
    """Real processes on one file: each that ended well is in it, the others said that it changed, and it is whole."""
    file = cursor_file(tmp_path)
    code = """
name = sys.argv[2]
for attempt in range(100):
    try:
        apply_install(plan_install(find_client("cursor"), context, InstallOptions(name=name)), context)
        break
    except ClientFileError as exc:
        assert "somebody else changed it" in str(exc)
"""
    names = [f"peg{n}" for n in range(5)]
    processes = [script(code, str(tmp_path), name) for name in names]
    assert [process.wait(60) for process in processes] == [0] * len(names)
    assert set(json.loads(file.read_bytes())["mcpServers"]) == {"mine", *names}
    context = context_of(tmp_path)
    apply_uninstall(plan_uninstall(CURSOR, context), context)
    assert file.read_bytes() == CONTENT


def test_a_file_that_changed_after_the_preview_is_not_written(tmp_path: Path) -> None:
    """What was shown is what is done, or nothing is."""
    file, context = cursor_file(tmp_path), context_of(tmp_path)
    plan = plan_install(CURSOR, context, InstallOptions())
    file.write_bytes(b"{}")
    with pytest.raises(ClientFileError, match="somebody else changed it after it was looked at; nothing was written"):
        apply_install(plan, context)
    assert file.read_bytes() == b"{}"
    assert context.backups.find("cursor", file) is None
    apply_install(plan_install(CURSOR, context, InstallOptions()), context)
    undo = plan_uninstall(CURSOR, context)
    file.write_bytes(b'{"mcpServers": {"pegboard": {"url": "http://127.0.0.1:7420/mcp"}}, "new": 1}')
    with pytest.raises(ClientFileError, match="somebody else changed it"):
        apply_uninstall(undo, context)


def test_a_file_that_appeared_after_the_preview_is_not_overwritten(tmp_path: Path) -> None:
    """It was to be created, and is there now."""
    file, context = cursor_file(tmp_path, None), context_of(tmp_path)
    plan = plan_install(CURSOR, context, InstallOptions())
    assert plan.outcome == "create"
    file.write_bytes(CONTENT)
    with pytest.raises(ClientFileError, match="somebody else changed it"):
        apply_install(plan, context)
    assert file.read_bytes() == CONTENT


@pytest.mark.scenario("first hour: A client's file is whole, whatever happens")
def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """Dotfiles: what it leads to is changed, in its own folder."""
    file, context = cursor_file(tmp_path, None), context_of(tmp_path)
    dotfile = tmp_path / "dotfiles" / "cursor.json"
    dotfile.parent.mkdir()
    dotfile.write_bytes(CONTENT)
    file.symlink_to(dotfile)
    apply_install(plan_install(CURSOR, context, InstallOptions()), context)
    assert file.is_symlink()
    assert b"pegboard" in dotfile.read_bytes()
    apply_uninstall(plan_uninstall(CURSOR, context), context)
    assert file.is_symlink()
    assert dotfile.read_bytes() == CONTENT
    assert [each.name for each in dotfile.parent.iterdir()] == ["cursor.json"]


def test_a_link_is_shown_with_the_file_that_changes(tmp_path: Path) -> None:
    """In words and in the heading of the diff, on the way in and out; a folder can be the link as well."""
    context = context_of(tmp_path)
    dotfiles = tmp_path / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "mcp.json").write_bytes(CONTENT)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".cursor").symlink_to(dotfiles)
    plan = plan_install(CURSOR, context, InstallOptions())
    apply_install(plan, context)
    undo = plan_uninstall(CURSOR, context)
    for remarks, diff in ((plan.remarks, plan.diff), (undo.remarks, undo.diff)):
        assert remarks == (f"There is a link in this path. The file that changes: {dotfiles / 'mcp.json'}",)
        assert diff.startswith(f"--- {dotfiles / 'mcp.json'}\n+++ {dotfiles / 'mcp.json'}\n")


def test_a_home_that_is_a_link_is_not_worth_a_word(tmp_path: Path) -> None:
    """The system made that one, and nothing leads away from it."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "disk")
    cursor_file(tmp_path)
    assert plan_install(CURSOR, context_of(tmp_path), InstallOptions()).remarks == ()


def test_a_link_that_is_turned_after_the_preview_is_not_followed(tmp_path: Path) -> None:
    """The file that was shown is the one that changes."""
    file, context = cursor_file(tmp_path, None), context_of(tmp_path)
    shown, other = tmp_path / "shown.json", tmp_path / "other.json"
    for each in (shown, other):
        each.write_bytes(CONTENT)
    file.symlink_to(shown)
    plan = plan_install(CURSOR, context, InstallOptions())
    file.unlink()
    file.symlink_to(other)
    apply_install(plan, context)
    assert b"pegboard" in shown.read_bytes()
    assert other.read_bytes() == CONTENT


def project_link(tmp_path: Path, link: str, target: str) -> None:
    path = tmp_path / "project" / link
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@pytest.mark.parametrize(("link", "target"), [(".cursor/mcp.json", "../../victim/mcp.json"), (".cursor", "../victim")])
@pytest.mark.parametrize("content", [CONTENT, b'{"mcpServers": {"pegboard": {"url": "http://127.0.0.1:7420/mcp"}}}'])
def test_a_link_out_of_the_project_is_refused(tmp_path: Path, link: str, target: str, content: bytes) -> None:
    """Whoever wrote the repository chose it: nothing outside of it changes, and the message names where it leads."""
    context, victim = context_of(tmp_path), tmp_path / "victim" / "mcp.json"
    victim.parent.mkdir()
    victim.write_bytes(content)
    project_link(tmp_path, link, target)
    reason = f"a link leads from there to {victim}, which is not in the project: nothing was changed"
    with pytest.raises(ClientFileError, match=reason):
        plan_install(CURSOR, context, InstallOptions(scope="project"))
    with pytest.raises(ClientFileError, match=reason):
        plan_uninstall(CURSOR, context, "project")
    assert victim.read_bytes() == content


def test_a_link_to_a_folder_outside_makes_no_file_there(tmp_path: Path) -> None:
    """Also where there is none yet."""
    (tmp_path / "victim").mkdir()
    project_link(tmp_path, ".cursor", "../victim")
    with pytest.raises(ClientFileError, match="which is not in the project"):
        plan_install(CURSOR, context_of(tmp_path), InstallOptions(scope="project"))
    assert not [*(tmp_path / "victim").iterdir()]


def test_a_link_within_the_project_is_followed(tmp_path: Path) -> None:
    """Also where the project's own folder is reached through a link."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "project").symlink_to(tmp_path / "disk")
    context, shared = context_of(tmp_path), tmp_path / "disk" / "shared.json"
    shared.write_bytes(CONTENT)
    project_link(tmp_path, ".cursor/mcp.json", "../shared.json")
    plan = plan_install(CURSOR, context, InstallOptions(scope="project"))
    assert f"There is a link in this path. The file that changes: {shared}" in plan.remarks
    apply_install(plan, context)
    assert b"pegboard" in shared.read_bytes()


def test_a_link_to_nothing_is_not_followed(tmp_path: Path) -> None:
    """It is said, and no file is made where nobody expects one."""
    file = cursor_file(tmp_path, None)
    file.symlink_to(tmp_path / "gone.json")
    with pytest.raises(ClientFileError, match="a link to a file that does not exist"):
        plan_install(CURSOR, context_of(tmp_path), InstallOptions())
    assert not (tmp_path / "gone.json").exists()


def test_a_link_in_a_circle_is_said(tmp_path: Path) -> None:
    """And ends."""
    file = cursor_file(tmp_path, None)
    file.symlink_to(file)
    with pytest.raises(ClientFileError, match=r"mcp\.json: "):
        plan_install(CURSOR, context_of(tmp_path), InstallOptions())


@pytest.mark.scenario("first hour: A client's file is whole, whatever happens")
def test_a_read_only_file_is_left_alone(tmp_path: Path) -> None:
    """Though it could be replaced: its owner does not want that."""
    file, context = cursor_file(tmp_path), context_of(tmp_path)
    file.chmod(0o444)
    with pytest.raises(ClientFileError, match="it is read-only; nothing was written"):
        apply_install(plan_install(CURSOR, context, InstallOptions()), context)
    assert file.read_bytes() == CONTENT
    assert stat.S_IMODE(file.stat().st_mode) == 0o444


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_the_mode_is_kept(tmp_path: Path, mode: int) -> None:
    """Whoever could read it can, and nobody else; the backup is the user's alone."""
    file, context = cursor_file(tmp_path), context_of(tmp_path)
    file.chmod(mode)
    apply_install(plan_install(CURSOR, context, InstallOptions()), context)
    assert stat.S_IMODE(file.stat().st_mode) == mode
    kept = list((tmp_path / "state" / "backups" / "cursor").iterdir())
    assert {each.name.partition(".")[2] for each in kept} == {"json", "note.json"}
    assert all(stat.S_IMODE(each.stat().st_mode) == 0o600 for each in kept)
    assert CONTENT in [each.read_bytes() for each in kept]


def test_line_ends_and_the_missing_last_one_are_kept(tmp_path: Path) -> None:
    """The entry has the line ends of the file."""
    file, context = cursor_file(tmp_path), context_of(tmp_path)
    apply_install(plan_install(CURSOR, context, InstallOptions()), context)
    changed = file.read_bytes()
    assert changed.count(b"\n") == changed.count(b"\r\n") > CONTENT.count(b"\n")
    assert changed.endswith(b"}")


BAD = [
    (b'{"mcpServers": {', "cannot be read: 1:17:"),
    (b'{"mcpServers": []}', "mcpServers is a list, and must be an object"),
    (b'{"mcpServers": "x"}', "mcpServers is a text, and must be an object"),
    (b"[]", "it holds a list, and must hold an object"),
    (b'{"a": 1, "a": 2}', 'the key "a" stands twice'),
    (b"\xff\xfe{\x00}\x00", "it is not UTF-8"),
    (b"[" * 100_000, "100 levels of nesting"),
    (b"\x00", "cannot be read"),
]


@pytest.mark.parametrize(("content", "reason"), BAD, ids=[reason for _, reason in BAD])
def test_a_file_that_cannot_be_read_is_never_touched(tmp_path: Path, content: bytes, reason: str) -> None:
    """The message names the file, the place and the reason."""
    file, context = cursor_file(tmp_path, content), context_of(tmp_path)
    for work in (lambda: plan_install(CURSOR, context, InstallOptions()), lambda: plan_uninstall(CURSOR, context)):
        with pytest.raises(ClientFileError) as caught:
            work()
        assert str(caught.value).startswith(str(file))
        assert reason in str(caught.value)
    assert file.read_bytes() == content


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    """Nobody's config is that large."""
    file = cursor_file(tmp_path, b"")
    with file.open("r+b") as handle:
        handle.truncate(MAX_BYTES + 1)
    with pytest.raises(ClientFileError, match="it is larger than"):
        plan_install(CURSOR, context_of(tmp_path), InstallOptions())


def test_a_large_file_is_changed_all_the_same(tmp_path: Path) -> None:
    """Claude Code keeps its history in its file, which grows beyond what a config may weigh."""
    document = {"projects": {f"/p/{n}": {"history": ["x" * 2000] * 10} for n in range(300)}, "mcpServers": {}}
    content = json.dumps(document, indent=2).encode()
    assert len(content) > 5_000_000
    client, context = find_client("claude-code"), context_of(tmp_path)
    file = tmp_path / "home" / ".claude.json"
    file.parent.mkdir()
    file.write_bytes(content)
    apply_install(plan_install(client, context, InstallOptions()), context)
    assert json.loads(file.read_bytes())["mcpServers"]["pegboard"]["type"] == "http"
    apply_uninstall(plan_uninstall(client, context), context)
    assert file.read_bytes() == content


def test_a_fifo_is_refused(tmp_path: Path) -> None:
    """It would be waited for, for ever."""
    file = cursor_file(tmp_path, None)
    os.mkfifo(file)
    with pytest.raises(ClientFileError, match="it is no ordinary file"):
        plan_install(CURSOR, context_of(tmp_path), InstallOptions())


@pytest.mark.parametrize("client", ["claude-code", "claude-desktop"])
def test_comments_where_the_client_reads_strict_json_are_said(tmp_path: Path, client: str) -> None:
    """It could not read the file either, with or without our entry."""
    program, context = find_client(client), context_of(tmp_path)
    target = program.target(context.place)
    assert target is not None
    target.path.parent.mkdir(parents=True)
    target.path.write_text('{"mcpServers": {}} // mine')
    with pytest.raises(ClientFileError, match="it is not strict JSON"):
        plan_install(program, context, InstallOptions())


TOML_BAD = [
    ('mcp_servers = {x = {url = "y"}}', "cannot be added behind what is there"),
    ('mcp_servers = "x"', "mcp_servers is a text, and must be an object"),
    ("[mcp_servers", "cannot be read"),
    ("a = 1\na = 2", "cannot be read"),
    ("a = " + "[" * 5000, "cannot be read"),
]


@pytest.mark.parametrize(("text", "reason"), TOML_BAD, ids=[reason for _, reason in TOML_BAD])
def test_toml_that_has_no_place_for_the_table_is_not_touched(tmp_path: Path, text: str, reason: str) -> None:
    """An inline table cannot be extended; a file that does not parse is left alone."""
    file = tmp_path / "home" / ".codex" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(text)
    with pytest.raises(ClientFileError, match=reason):
        plan_install(find_client("codex"), context_of(tmp_path), InstallOptions())
    assert file.read_text() == text


def test_tables_that_codex_added_to_ours_go_with_it(tmp_path: Path) -> None:
    """Also without a note: our table is cut out, and what belongs to the next one stays."""
    file, context = tmp_path / "home" / ".codex" / "config.toml", context_of(tmp_path)
    file.parent.mkdir(parents=True)
    ours = '[mcp_servers.pegboard]\nurl = "http://127.0.0.1:7420/mcp"\n\n[mcp_servers.pegboard.tools.x]\na = 1\n'
    file.write_text(f'model = "o5"\n\n{ours}\n# about next\n[next]\nx = 1\n')
    apply_uninstall(plan_uninstall(find_client("codex"), context), context)
    assert file.read_text() == 'model = "o5"\n\n# about next\n[next]\nx = 1\n'


def test_ours_as_an_inline_table_is_left_to_the_person(tmp_path: Path) -> None:
    """It cannot be cut out of its line, so that is said."""
    file, context = tmp_path / "home" / ".codex" / "config.toml", context_of(tmp_path)
    file.parent.mkdir(parents=True)
    file.write_text('mcp_servers = {pegboard = {url = "http://127.0.0.1:7420/mcp"}}\n')
    with pytest.raises(ClientFileError, match="is not written as a table of its own: take it out by hand"):
        plan_uninstall(find_client("codex"), context)
