"""Where VS Code and its relatives keep their chats."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from chats.makers import ADA, START, Home, log, request, session, whole, write
from pegboard.toolsets.chats.chats import local_sources
from pegboard.toolsets.chats.folders import Around, Within, belongs, flatten, holds, path_of, same_form
from pegboard.toolsets.chats.source import ChatSource
from pegboard.toolsets.chats.vscode import PRODUCTS, VSCode, find_editors

CHAT = b'{"requests": []}'


def found(sources: list[VSCode] | list[ChatSource]) -> set[tuple[str, str | None]]:
    return {(source.name, file.session_id) for source in sources for file in source.files()}


@pytest.mark.parametrize(
    ("platform", "env", "folder"),
    [
        ("linux", {}, ".config"),
        ("linux", {"XDG_CONFIG_HOME": "{home}/xdg"}, "xdg"),
        ("darwin", {}, "Library/Application Support"),
        ("win32", {}, "AppData/Roaming"),
        ("win32", {"APPDATA": "{home}/Daten"}, "Daten"),
        ("linux", {"VSCODE_APPDATA": "{home}/own"}, "own"),
    ],
)
def test_every_editor_is_found_on_every_system(tmp_path: Path, platform: str, env: dict[str, str], folder: str) -> None:
    """In folders and in windows without one."""
    given = {name: value.format(home=tmp_path) for name, value in env.items()}
    for product in PRODUCTS:
        user = tmp_path / folder / product / "User"
        write(user / "workspaceStorage" / "w1" / "chatSessions" / "a.json", CHAT)
        write(user / "globalStorage" / "emptyWindowChatSessions" / "b.jsonl", CHAT)
    expected = {(product, name) for product in PRODUCTS for name in "ab"}
    assert found(find_editors(given, tmp_path, platform)) == expected


@pytest.mark.parametrize(("platform", "folder"), [("darwin", "Library/Application Support"), ("linux", ".config")])
def test_chats_are_looked_for_where_this_system_keeps_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, platform: str, folder: str
) -> None:
    """Nobody has to say which system it is."""
    monkeypatch.setattr("sys.platform", platform)
    write(tmp_path / folder / "Code/User/workspaceStorage/w1/chatSessions/a.json", CHAT)
    assert found(local_sources({}, tmp_path)) == {("Code", "a")}


def test_remote_windows_and_portable_editors_are_found(tmp_path: Path) -> None:
    """A portable editor is the only one, as for itself; servers are looked for in any case."""
    for place in (
        ".vscode-server/data",
        ".vscode-server-insiders/data",
        "stick/user-data",
        ".config/Code",
        "agent/data",
    ):
        write(tmp_path / place / "User/workspaceStorage/w/chatSessions" / f"{place.replace('/', '_')}.json", CHAT)
    env = {"VSCODE_PORTABLE": str(tmp_path / "stick"), "VSCODE_AGENT_FOLDER": str(tmp_path / "agent")}
    assert found(find_editors(env, tmp_path, "linux")) == {
        ("Code", ".vscode-server_data"),
        ("Code - Insiders", ".vscode-server-insiders_data"),
        ("Code", "stick_user-data"),
        ("Code", "agent_data"),
    }


def test_of_two_files_of_one_session_the_log_counts(home: Home) -> None:
    """Other files beside them are none of ours."""
    home.chat("one", session("old"))
    log_file = home.chat("one", log(whole(session("new"))))
    for other in ("one.json.bak", "notes.txt", ".json", "jsonl"):
        write(log_file.parent / other, CHAT)
    (log_file.parent / "folder.json").mkdir()
    files = [file for source in home.sources() for file in source.files()]
    assert [file.path for file in files] == [str(log_file)]


def test_a_log_in_which_nothing_is_hides_no_document(home: Home) -> None:
    """Nor does a folder of its name; alone, an empty one is a session without a chat."""
    document = home.chat("one", session("old"))
    write(document.with_name("one.jsonl"), b"")
    other = home.chat("two", session("old"))
    other.with_name("two.jsonl").mkdir()
    write(document.with_name("three.jsonl"), b"")
    files = [file for source in home.sources() for file in source.files()]
    assert sorted(Path(file.path).name for file in files) == ["one.json", "three.jsonl", "two.json"]


def test_odd_files_are_passed_over(home: Home) -> None:
    """Pipes, links that lead nowhere or in circles, folders nobody may see; a link to a file is that file."""
    folder = home.workspace() / "chatSessions"
    os.mkfifo(folder / "pipe.json")
    (folder / "nowhere.json").symlink_to(folder / "missing")
    (folder / "circle.json").symlink_to(folder / "circle.json")
    (folder / "linked.json").symlink_to(write(home.folder / "elsewhere", CHAT))
    (home.user() / "workspaceStorage" / "circle").symlink_to(home.user() / "workspaceStorage" / "circle")
    write(home.user() / "workspaceStorage" / "file", b"")
    assert found(home.sources()) == {("Code", "linked")}


@pytest.mark.parametrize(
    ("content", "folders"),
    [
        (b'{"folder": "file:///home/ada/my%20shop%20%C3%BC"}', ["/home/ada/my shop ü"]),
        (b'{"folder": "file:///c%3A/Users/Ada"}', ["C:/Users/Ada"]),
        (b'{"folder": "file://server/share/x"}', ["//server/share/x"]),
        (b'{"folder": "vscode-remote://ssh-remote%2Bbox/srv/app"}', ["/srv/app"]),
        (b'{"workspace": "file:///gone/my.code-workspace"}', ["/gone/my.code-workspace"]),
        (b'{"folder": 5}', []),
        (b'{"folder": "http://[broken"}', ["http://[broken"]),
        (b"[]", []),
        (b"", []),
        (b"\xff\xfe", []),
    ],
)
def test_a_workspace_tells_its_folder(home: Home, content: bytes, folders: list[str]) -> None:
    """Percent-encoded, on other machines, or not at all."""
    path = home.chat("one", session("x"), folder=None)
    write(path.parent.parent / "workspace.json", content)
    source = home.sources()[0]
    assert list(source.folders(next(source.files())) or ()) == folders


def test_a_workspace_of_several_folders_tells_each(home: Home) -> None:
    """From its own file, comments and all; paths in there go from where that lies. A folder more is seen at once."""
    text = (
        '{"folders": [{"path": "shop"}, {"path": "../till"}, {"uri": "file:///srv/x"}, {"path": "\\u0000"}], /* ! */}'
    )
    several = write(home.folder / "code" / "my.code-workspace", text.encode())
    path = home.chat("one", session("x"), folder=None)
    write(path.parent.parent / "workspace.json", json.dumps({"workspace": several.as_uri()}).encode())
    source = home.sources()[0]
    expected = [str(home.folder / "code" / "shop"), str(home.folder / "till"), "/srv/x"]
    assert list(source.folders(next(source.files())) or ()) == expected
    write(several, b'{"folders": [{"path": "/srv/y"}, {"path": "/srv/z"}]}')
    assert list(source.folders(next(source.files())) or ()) == ["/srv/y", "/srv/z"]
    write(path.parent.parent / "workspace.json", b'{"folder": "file:///srv/only"}')
    assert list(source.folders(next(source.files())) or ()) == ["/srv/only"]


def test_a_session_of_the_index_alone_is_known_by_name(home: Home) -> None:
    """With nothing but its title and time; the index is read again when it changed, and only then."""
    path = home.index("ghost")
    source = home.sources()[0]
    hinted = source.hint("ghost")
    assert hinted is not None
    assert (hinted.chat_json_path, hinted.title, hinted.last_seen) == (None, "Title of ghost", START)
    assert source.hint("other") is None
    home.index("ghost", "other")
    os.utime(path, (1, 1))
    assert source.hint("other") is not None


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0" + b"\1" * 5000, b"\0" * 8192, b"text", None])
def test_an_index_that_cannot_be_read_tells_nothing(home: Home, content: bytes | None) -> None:
    """Empty, damaged, something else, or a pipe that nobody writes to."""
    path = home.workspace() / "state.vscdb"
    if content is None:
        os.mkfifo(path)
    else:
        write(path, content)
    assert home.sources()[0].hint("ghost") is None


def test_an_index_that_is_a_number_takes_no_memory(home: Home) -> None:
    """As many bytes as the number says would be more than there are."""
    path = home.index("ghost")
    for number in (4_000_000_000_000, 3):
        with sqlite3.connect(path) as database:
            database.execute("UPDATE ItemTable SET value = ?", (number,))
        database.close()
        os.utime(path, (number % 1000, 1))
        assert home.sources()[0].hint("ghost") is None


def test_the_index_of_a_running_editor_is_left_alone(home: Home) -> None:
    """Read while another connection holds it with a log beside it: no file comes, goes or changes."""
    path = home.index("ghost")
    with sqlite3.connect(path) as editor:
        editor.execute("PRAGMA journal_mode = WAL")
        editor.execute("INSERT INTO ItemTable VALUES ('x', 'y')")
        editor.commit()
        editor.execute("BEGIN IMMEDIATE")
        before = {each.name: each.read_bytes() for each in path.parent.iterdir() if each.is_file()}
        assert home.sources()[0].hint("ghost") is not None
        assert {each.name: each.read_bytes() for each in path.parent.iterdir() if each.is_file()} == before
        editor.rollback()
    editor.close()
    for beside in ("-wal", "-shm"):
        (path.parent / f"state.vscdb{beside}").unlink(missing_ok=True)
    assert home.sources()[0].hint("ghost") is not None
    assert sorted(each.name for each in path.parent.iterdir()) == ["chatSessions", "state.vscdb", "workspace.json"]


def test_exported_chats_are_read_from_a_folder(home: Home) -> None:
    """Their names say nothing; other files are no chats."""
    home.export("chat.json", {"initialLocation": "panel", "requests": [request("one")], "responderUsername": "x"})
    home.export("package.json", {"name": "x"})
    assert found([home.sources()[-1]]) == {("export", None)}


@pytest.mark.parametrize(
    ("folder", "place", "inside", "around"),
    [
        (ADA, "/home/ada/shop", True, True),
        (ADA, "/home/ada/shop/", True, True),
        (ADA, "file:///home/ada", True, False),
        (ADA, "/", True, False),
        (ADA, "/home/ada/shop/src", False, True),
        (ADA, "/home/ada/shopping", False, False),
        ("C:/Users/Ada", "file:///c%3A/users/ada", True, True),
        ("C:\\Users\\Ada\\x", "c:/users/ada", True, False),
        ("vscode-remote://wsl+x/srv", "file:///srv", True, True),
    ],
)
def test_folders_are_compared_as_they_are_meant(folder: str, place: str, inside: bool, around: bool) -> None:
    """As paths or URIs, with Windows' ways."""
    assert belongs([folder], [place]) is inside
    assert holds([folder], [place]) is around
    assert same_form(path_of(folder)) == same_form(folder)
    flat = flatten(same_form(folder))
    assert Within([place]).admits([folder]) is inside
    assert Within([place]).may_admit(flat) or not inside
    assert Around([place]).admits([folder]) is around
    assert Around([place]).may_admit(flat) or not around
