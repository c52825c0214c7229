"""What changing one server's entry does to the config file, and what it leaves alone."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.config import ConfigError, ConfigWriteError, jsonc, read_settings
from pegboard.config.edit import add_server, add_servers, change_server, find_entry, remove_server, switch_server
from pegboard.config.locate import trust_store
from pegboard.config.settings import ServerExistsError

_MINE = """\
// my servers
{
  "$schema": "./schema.json", /* kept */
  "mcpServers": {
    // versions
    "git":  { "command": "uvx", "args": ["mcp-server-git"] },   // from PyPI

    "Git-Hub": {
      "url"     : "https://h.example/mcp", // slow
      "headers" : {"X": "é ☃ \\u00e9"},
      "disabled": true
    },
    "docs": {"url": "https://d.example", "enabled": false,}, // last
  },
  "other": [1,2,  3],
}
"""

Change = Callable[[Path], object]


def switched(name: str, *, enabled: bool, known: bool = False) -> Change:
    return lambda path: switch_server(path, name, enabled=enabled, known_elsewhere=known)


def removed(name: str) -> Change:
    return lambda path: remove_server(path, name)


def added(name: str, entry: dict[str, Any]) -> Change:
    return lambda path: add_server(path, name, entry)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A config file in a folder that has nothing else."""
    folder = tmp_path / "alone"
    folder.mkdir()
    file = folder / "pegboard.json"
    file.write_bytes(_MINE.encode())
    return file


def names(path: Path) -> list[str]:
    return list(read_settings(path, {}).servers)


# Only that entry changes

_EDITS: list[tuple[Change, str, str]] = [
    (
        added("Time Zone", {"env": {"A": "1"}}),
        '"enabled": false,}, // last\n',
        '"enabled": false,}, // last\n    "Time Zone": {\n      "env": {\n        "A": "1"\n      }\n    },\n',
    ),
    (
        removed("git"),
        '    // versions\n    "git":  { "command": "uvx", "args": ["mcp-server-git"] },   // from PyPI\n',
        "",
    ),
    (removed("docs"), '    "docs": {"url": "https://d.example", "enabled": false,}, // last\n', ""),
    (switched("git", enabled=False), '["mcp-server-git"] }', '["mcp-server-git"], "enabled": false }'),
    (switched("docs", enabled=True), '"enabled": false,}, // last', '"enabled": true,}, // last'),
    (switched("Git-Hub", enabled=True), ',\n      "disabled": true\n', "\n"),
    (switched("git_hub", enabled=False), '      "disabled": true\n', '      "enabled": false\n'),
    (switched("git", enabled=True), "", ""),
    (switched("docs", enabled=False), "", ""),
    (
        switched("rube", enabled=False, known=True),
        '"enabled": false,}, // last\n',
        '"enabled": false,}, // last\n    "rube": {\n      "enabled": false\n    },\n',
    ),
]


@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", ["  ", "\t", "    "])
@pytest.mark.parametrize(("change", "before", "after"), _EDITS)
def test_everything_else_stays_byte_for_byte(
    path: Path, change: Change, before: str, after: str, indent: str, ending: str, bom: str
) -> None:
    """Comments, order, spacing, indentation, line endings and BOM survive; the one entry changes in their style."""

    def styled(text: str) -> bytes:
        lines = [line.lstrip(" ") for line in text.split("\n")]
        steps = [(len(old) - len(new)) // 2 for old, new in zip(text.split("\n"), lines, strict=True)]
        return (bom + ending.join(indent * step + line for step, line in zip(steps, lines, strict=True))).encode()

    assert _MINE.count(before) == 1 or not before
    path.write_bytes(styled(_MINE))
    change(path)
    assert path.read_bytes() == styled(_MINE.replace(before, after) if before else _MINE)


def test_changes_are_read_back(path: Path) -> None:
    """What was written is what the next start reads."""
    add_server(path, "time", {"command": "uvx", "args": ["mcp-server-time"], "env": {"TZ": "Ünï"}})
    assert names(path) == ["git", "git_hub", "docs", "time"]
    time = read_settings(path, {}).servers["time"]
    assert (time.command, time.args, time.env) == ("uvx", ("mcp-server-time",), {"TZ": "Ünï"})
    remove_server(path, "git_hub")
    switch_server(path, "time", enabled=False)
    switch_server(path, "docs", enabled=True)
    assert {name: spec.enabled for name, spec in read_settings(path, {}).servers.items()} == {
        "git": True,
        "docs": True,
        "time": False,
    }


def test_off_and_on_again_is_as_before(path: Path) -> None:
    """Switching a server there and back leaves it as it was read before."""
    before = read_settings(path, {})
    switch_server(path, "git", enabled=False)
    assert read_settings(path, {}).servers["git"].enabled is False
    switch_server(path, "git", enabled=True)
    assert read_settings(path, {}) == before


def test_added_and_removed_is_byte_for_byte_as_before(path: Path) -> None:
    """Adding a server and removing it again leaves no trace."""
    add_server(path, "time", {"command": "uvx"})
    assert path.read_bytes() != _MINE.encode()
    remove_server(path, "time")
    assert path.read_bytes() == _MINE.encode()


@pytest.mark.parametrize(
    ("entry", "enabled"), [({"enabled": False, "disabled": True}, True), ({"disabled": None}, False)]
)
def test_the_two_switches_never_contradict(path: Path, entry: dict[str, Any], enabled: bool) -> None:
    """Other clients' `disabled` gives way to `enabled`, so that both can never be there and disagree."""
    path.write_text(json.dumps({"mcpServers": {"a": {"command": "a", **entry}}}))
    switch_server(path, "a", enabled=enabled)
    assert json.loads(path.read_text())["mcpServers"]["a"] == {"command": "a", "enabled": enabled}


def test_entries_of_vs_codes_shape_are_changed_in_place(path: Path) -> None:
    """In a file with `servers`, new and changed entries stand there: VS Code must see them too."""
    path.write_text('{"servers": {"a": {"command": "a"}, "b": {"command": "b"}}, "inputs": []}')
    add_server(path, "c", {"command": "c"})
    switch_server(path, "a", enabled=False)
    switch_server(path, "rube", enabled=False, known_elsewhere=True)
    remove_server(path, "b")
    assert json.loads(path.read_text()) == {
        "servers": {"a": {"command": "a", "enabled": False}, "c": {"command": "c"}, "rube": {"enabled": False}},
        "inputs": [],
    }


@pytest.mark.parametrize("section", ["mcpServers", "servers"])
def test_a_section_that_is_null_is_filled(path: Path, section: str) -> None:
    """A section that is there but null counts as empty here as it does in reading."""
    path.write_text(f'{{"{section}": null}}')
    add_server(path, "a", {"command": "a"})
    assert json.loads(path.read_text()) == {section: {"a": {"command": "a"}}}
    path.write_text(f'{{"{section}": null}}')
    switch_server(path, "rube", enabled=False, known_elsewhere=True)
    assert json.loads(path.read_text()) == {section: {"rube": {"enabled": False}}}


# Refusals leave the file untouched


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (added("git", {"command": "x"}), 'there is a server "git" already'),
        (added("GIT", {"command": "x"}), 'there is a server "GIT" already'),
        (added("git_hub", {"command": "x"}), 'there is a server "git_hub" already'),
        (removed("gti"), 'there is no server "gti"'),
        (switched("gti", enabled=True), 'there is no server "gti"'),
        (lambda path: switch_server(path, "gti", enabled=False), 'there is no server "gti"'),
        (switched("gti", enabled=False), 'there is no server "gti"'),
        (added("new", {"url": "nowhere"}), "mcpServers.new.url must be an http:// or https:// address"),
        (added("new", {"command": 1}), "mcpServers.new.command must be a text, found 1"),
    ],
)
def test_a_refused_change_leaves_the_file_untouched(path: Path, change: Change, message: str) -> None:
    """A name that is taken or unknown, or an entry that could not be read back, changes nothing."""
    before = path.stat()
    with pytest.raises(ConfigError) as caught:
        change(path)
    assert str(caught.value).startswith(f"{path}:")
    assert message in str(caught.value)
    after = path.stat()
    assert path.read_bytes() == _MINE.encode()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert list(path.parent.iterdir()) == [path]


def test_a_second_server_without_a_prefix_is_refused(path: Path) -> None:
    """A change that would make the whole file unusable is refused before it is written."""
    add_server(path, "a", {"command": "a", "prefix": False})
    before = path.read_bytes()
    with pytest.raises(ConfigError, match="prefix"):
        add_server(path, "b", {"command": "b", "prefix": False})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        b'{"mcpServers": {"git": {"command": "uvx"}',
        b'{"mcpServers": {"git": {"command": "uvx"}} // comma\n "x": 1}',
        b"[]",
        b'{"mcpServers": []}',
        b'{"mcpServers": ["git"]}',
        b'{"mcpServers": {"git": {"command": "uvx"}, "Git": {"command": "uvx"}}}',
        b'{"mcpServers": {"git": {"command": "\xff"}}}',
        b"// nothing but a comment",
    ],
)
@pytest.mark.parametrize(
    "change", [added("new", {"command": "x"}), removed("git"), switched("git", enabled=False, known=True)]
)
def test_a_broken_file_is_never_rewritten(path: Path, content: bytes, change: Change) -> None:
    """A file that cannot be read is left to its author, with the same message that reading it gives."""
    path.write_bytes(content)
    with pytest.raises(ConfigError) as reading:
        read_settings(path, {})
    with pytest.raises(ConfigError) as changing:
        change(path)
    assert str(changing.value) == str(reading.value)
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_an_entry_that_cannot_be_read_is_not_added(path: Path) -> None:
    """It is refused with the reason; one that stands there already hinders no change of the others, nor its removal."""
    before = '{"mcpServers": {"odd": {"url": 1}, "list": [], "git": {"command": "uvx"}}}'
    path.write_text(before, "utf-8")
    with pytest.raises(ConfigError, match=r"mcpServers\.new\.url is not an address"):
        add_server(path, "new", {"type": "http", "url": "https://h:99999/"})
    assert path.read_text("utf-8") == before
    switch_server(path, "git", enabled=False)
    with pytest.raises(ConfigError, match=r"mcpServers\.list must be an object"):
        switch_server(path, "list", enabled=False)
    remove_server(path, "list")
    remove_server(path, "odd")
    assert list(json.loads(path.read_text("utf-8"))["mcpServers"]) == ["git"]


@pytest.mark.skipif(sys.platform == "win32", reason="the system words it differently")
def test_a_folder_is_refused(tmp_path: Path) -> None:
    """A folder in place of the file is told as it is in reading."""
    with pytest.raises(ConfigError) as caught:
        add_server(tmp_path, "a", {"command": "a"})
    assert str(caught.value) == f"{tmp_path}: Is a directory"


@pytest.mark.skipif(sys.platform == "win32", reason="names have other limits there")
def test_a_file_that_cannot_be_replaced_is_refused(tmp_path: Path) -> None:
    """Where no new file can be put beside it, that is a ConfigError too, and the old file stays."""
    path = tmp_path / ("x" * 250 + ".json")
    path.write_text("{}")
    with pytest.raises(ConfigError, match="it cannot be written: File name too long"):
        add_server(path, "a", {"command": "a"})
    assert path.read_text() == "{}"


# How it is written


@pytest.mark.skipif(sys.platform == "win32", reason="mode bits are of other systems")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o660])
def test_mode_bits_survive(path: Path, mode: int) -> None:
    """Who may read the file is not changed by changing an entry."""
    path.chmod(mode)
    switch_server(path, "git", enabled=False)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(sys.platform == "win32", reason="mode bits are of other systems")
def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """A new file can come to hold keys, so nobody else may read it."""
    path = tmp_path / "pegboard.json"
    add_server(path, "a", {"command": "a"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("relative", [False, True])
def test_a_symlink_survives(path: Path, tmp_path: Path, relative: bool) -> None:
    """A linked config, as in a folder of dotfiles, stays a link, and the file behind it changes."""
    link = tmp_path / "linked" / "config.json"
    link.parent.mkdir()
    link.symlink_to(Path("..") / "alone" / "pegboard.json" if relative else path)
    remove_server(link, "git")
    assert link.is_symlink()
    assert names(path) == names(link) == ["git_hub", "docs"]
    assert list(path.parent.iterdir()) == [path]
    assert list(link.parent.iterdir()) == [link]


def test_a_symlink_to_nothing_is_followed(tmp_path: Path) -> None:
    """A link whose file is not there yet gets that file."""
    link, target = tmp_path / "link.json", tmp_path / "target.json"
    link.symlink_to(target)
    add_server(link, "a", {"command": "a"})
    assert link.is_symlink()
    assert names(target) == ["a"]


def test_a_symlink_to_itself_is_refused(tmp_path: Path) -> None:
    """A link that leads nowhere but to itself is a clear message."""
    link = tmp_path / "link.json"
    link.symlink_to(link)
    with pytest.raises(ConfigError):
        add_server(link, "a", {"command": "a"})


@pytest.mark.parametrize("change", [edit[0] for edit in _EDITS])
def test_no_draft_is_left_behind(path: Path, change: Change) -> None:
    """After a change the folder holds the one file that it held before."""
    change(path)
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced there")
def test_a_reader_never_sees_half_a_file(path: Path) -> None:
    """The file is replaced as a whole: who had it open goes on reading the old one to its end."""
    with path.open("rb") as reader:
        start = reader.read(20)
        add_server(path, "time", {"command": "uvx"})
        assert start + reader.read() == _MINE.encode()
        assert os.fstat(reader.fileno()).st_ino != path.stat().st_ino


# A file that is not there yet


@pytest.mark.parametrize("content", [None, "", "\n", "  \r\n"])
def test_the_first_server(tmp_path: Path, content: str | None) -> None:
    """A missing or empty file, and its folder, are made with the first server."""
    path = tmp_path / "new" / "folder" / "config.json"
    if content is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(content.encode())
    add_server(path, "docs", {"type": "http", "url": "https://d.example"})
    assert json.loads(path.read_text()) == {"mcpServers": {"docs": {"type": "http", "url": "https://d.example"}}}
    assert path.read_text().startswith('{\n  "mcpServers": {\n    "docs": {\n')
    assert path.read_text().endswith("}\n")


@pytest.mark.parametrize("change", [removed("docs"), switched("docs", enabled=False)])
def test_nothing_is_made_for_a_server_that_is_not_there(tmp_path: Path, change: Change) -> None:
    """Removing from or switching in a missing file is an error and makes no file."""
    path = tmp_path / "new" / "config.json"
    with pytest.raises(ConfigError, match="there is no server"):
        change(path)
    assert not path.parent.exists()


# Servers of the environment


def test_a_server_of_the_environment_can_be_disabled(tmp_path: Path) -> None:
    """A server that no file knows gets an entry that switches it off, and back on."""
    path = tmp_path / "config.json"
    environment = {"RUBE_MCP_URL": "https://r.example", "RUBE_API_KEY": "tulip-42"}
    switch_server(path, "rube", enabled=False, known_elsewhere=True)
    assert json.loads(path.read_text()) == {"mcpServers": {"rube": {"enabled": False}}}
    off = read_settings(path, environment).servers["rube"]
    switch_server(path, "rube", enabled=True, known_elsewhere=True)
    on = read_settings(path, environment).servers["rube"]
    assert (off.enabled, on.enabled) == (False, True)
    assert (off.problem, on.problem) == (None, None)
    assert on.headers == off.headers == {"Authorization": "Bearer tulip-42"}


def test_a_server_of_the_file_is_switched_where_it_is(path: Path) -> None:
    """A server that the file has under another spelling gets no second entry."""
    switch_server(path, "git_hub", enabled=True, known_elsewhere=True)
    assert names(path) == ["git", "git_hub", "docs"]
    assert read_settings(path, {}).servers["git_hub"].enabled is True


@pytest.mark.parametrize("name", ["git", "docs"])
def test_missing_variables_do_not_stop_a_change(path: Path, name: str) -> None:
    """A file is changed whether or not the variables it names are set here."""
    path.write_text('{"mcpServers": {"git": {"command": "${NOT_SET_HERE}"}, "docs": {"url": "${NOT_SET_HERE}"}}}')
    switch_server(path, name, enabled=False)
    servers = read_settings(path, {"NOT_SET_HERE": "https://x.example"}).servers
    assert [spec.enabled for spec in servers.values()] == [name != "git", name != "docs"]


# Any name, any entry

_NAMES = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=12)
_ENTRIES = st.fixed_dictionaries(
    {"command": st.from_regex(r"[a-z]{1,5}", fullmatch=True)},
    optional={"args": st.lists(_NAMES, max_size=3), "env": st.dictionaries(_NAMES, _NAMES, max_size=2)},
)


@given(name=_NAMES, entry=_ENTRIES)
@settings(derandomize=True, deadline=None, max_examples=60)
def test_any_server_can_be_added_and_removed(
    tmp_path_factory: pytest.TempPathFactory, name: str, entry: dict[str, Any]
) -> None:
    """Whatever a server is called and given, adding it keeps the entry exactly, and removing it the file."""
    path = tmp_path_factory.mktemp("any") / "pegboard.json"
    before = '{\n  "mcpServers": {\n    "some-other_name": {"command": "x"} // first\n  }\n}\n'
    path.write_bytes(before.encode())
    add_server(path, name, entry)
    (spec,) = [spec for spec in read_settings(path, {}).servers.values() if spec.given_name == name]
    assert spec.command == entry["command"]
    remove_server(path, name)
    assert path.read_bytes() == before.encode()


def test_changes_by_several_processes_at_once_are_all_kept(tmp_path: Path) -> None:
    """Each waits for the one before: nobody writes over what he has not read."""
    path = tmp_path / "pegboard.json"
    script = (
        "import sys; from pathlib import Path; from pegboard.config.edit import add_server\n"
        "for n in range(5): add_server(Path(sys.argv[1]), f'{sys.argv[2]}{n}', {'command': 'x'})"
    )
    started = [subprocess.Popen([sys.executable, "-c", script, str(path), letter]) for letter in "abcd"]
    assert [process.wait(60) for process in started] == [0, 0, 0, 0]
    servers = json.loads(path.read_text("utf-8"))["mcpServers"]
    assert sorted(servers) == [f"{letter}{number}" for letter in "abcd" for number in range(5)]


class Meddling(Mapping[str, object]):
    """An entry during whose writing somebody else changes the file."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text

    def __getitem__(self, key: str) -> object:
        return {"command": "uvx"}[key]

    def __len__(self) -> int:
        return 1

    def __iter__(self) -> Iterator[str]:
        self._path.write_text(self._text)
        return iter(["command"])


def test_a_change_from_outside_at_the_same_moment_is_not_overwritten(tmp_path: Path) -> None:
    """Whoever edits the file knows nothing of our lock: their change stays, and ours is refused."""
    path = tmp_path / "pegboard.json"
    path.write_text('{"mcpServers": {}}')
    theirs = '{"mcpServers": {"theirs": {"command": "x"}}}'
    with pytest.raises(ConfigWriteError, match="somebody else changed it just now"):
        add_server(path, "mine", Meddling(path, theirs))
    assert path.read_text() == theirs
    add_server(path, "mine", {"command": "uvx"})
    assert list(read_settings(path, {}).servers) == ["theirs", "mine"]


@pytest.mark.parametrize(
    "change",
    [
        lambda path: add_server(path, "mine", {"command": "uvx"}, needs_trust=True),
        lambda path: remove_server(path, "theirs", needs_trust=True),
        lambda path: switch_server(path, "theirs", enabled=False, needs_trust=True),
    ],
)
def test_a_file_that_changed_since_it_was_trusted_is_not_changed(tmp_path: Path, change: Change) -> None:
    """Our own change would stay trusted, and what came from outside with it."""
    path = tmp_path / "pegboard.json"
    trust_store().add(path, b'{"mcpServers": {}}')
    theirs = '{"mcpServers": {"theirs": {"command": "x"}}}'
    path.write_text(theirs)
    with pytest.raises(ConfigError, match="changed since it was trusted"):
        change(path)
    assert path.read_text() == theirs
    assert trust_store().text(path) == '{"mcpServers": {}}'
    trust_store().add(path, theirs.encode())
    change(path)
    assert trust_store().holds(path, path.read_bytes())


def test_the_same_entry_again_changes_nothing(path: Path) -> None:
    """Under any spelling of its keys, and switched off or not; another one is refused unless it is forced."""
    assert add_server(path, "new", {"command": "x", "args": ["y"]})
    before = path.read_bytes()
    for same in ({"command": "x", "args": ["y"]}, {"cmd": "x", "arguments": ["y"], "enabled": False}):
        assert not add_server(path, "NEW", same)
    with pytest.raises(ServerExistsError):
        add_server(path, "new", {"command": "z"})
    assert path.read_bytes() == before
    assert not add_server(path, "NEW", {"command": "z"}, force=True)
    assert find_entry(path, "new") == {"command": "z"}


def test_several_servers_are_written_in_one_step_or_none(path: Path) -> None:
    """With a backup of what the file said; one that cannot be read stops all of them."""
    before = path.read_bytes()
    for wrong in ({"a": {"command": "x"}, "git": {"command": "y"}}, {"a": {"command": "x"}, "b": {"url": "nowhere"}}):
        with pytest.raises(ConfigError):
            add_servers(path, wrong)
        assert path.read_bytes() == before
    backup = add_servers(path, {"a": {"command": "x"}, "b": {"command": "y"}})
    assert backup is not None
    assert backup.read_bytes() == before
    again = add_servers(path, {"c": {"command": "x"}})
    assert again is not None
    assert again != backup
    remove_server(path, "c")
    remove_server(path, "b")
    remove_server(path, "a")
    assert path.read_bytes() == before


def test_many_servers_cost_no_more_looks_at_the_file_than_few(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a look at the growing text for each of them, six hundred took more than a minute, with the file locked."""
    looks: list[int] = []
    parse = jsonc.parse

    def counted(text: str) -> jsonc.JsoncDocument:
        looks.append(len(text))
        return parse(text)

    monkeypatch.setattr(jsonc, "parse", counted)
    add_servers(path, {"first": {"command": "x"}})
    few = len(looks)
    add_servers(path, {f"s{number}": {"command": "x"} for number in range(50)})
    assert len(looks) == 2 * few
    assert len(names(path)) >= 51


def test_two_new_servers_of_one_name_are_refused(path: Path) -> None:
    """`a-b` and `a_b` are one name."""
    before = path.read_bytes()
    with pytest.raises(ServerExistsError, match='"a_b"'):
        add_servers(path, {"a-b": {"command": "x"}, "a_b": {"command": "y"}})
    assert path.read_bytes() == before


def test_a_new_file_has_no_backup(tmp_path: Path) -> None:
    """There is nothing to go back to."""
    assert add_servers(tmp_path / "new.json", {"a": {"command": "x"}}) is None


def test_members_of_an_entry_are_changed_in_place(path: Path) -> None:
    """The others, and everything around, stay byte for byte."""
    before = path.read_text("utf-8")
    change_server(path, "git", {"timeout": 7})
    assert (find_entry(path, "git") or {})["timeout"] == 7
    change_server(path, "git", {"timeout": None, "ttl": None})
    assert path.read_text("utf-8") == before
    with pytest.raises(ConfigError, match="must be a number of seconds"):
        change_server(path, "git", {"timeout": "soon"})
    assert path.read_text("utf-8") == before


def test_a_plain_list_of_tools_still_lets_only_those_through_when_more_is_said(path: Path) -> None:
    """It stands for `allow`; what is added to it is taken out again, and another list replaces it."""
    change_server(path, "git", {"tools": ["look", "read"]})
    change_server(path, "git", {"timeout": 7})
    assert (find_entry(path, "git") or {})["tools"] == ["look", "read"]
    change_server(path, "git", {"tools": {"deny": ["read"]}})
    assert (find_entry(path, "git") or {})["tools"] == {"allow": ["look", "read"], "deny": ["read"]}
    change_server(path, "git", {"tools": {"deny": None}})
    assert (find_entry(path, "git") or {})["tools"] == {"allow": ["look", "read"]}
    change_server(path, "git", {"tools": ["look"]})
    change_server(path, "git", {"tools": {"deny": None}})
    assert (find_entry(path, "git") or {})["tools"] == {"allow": ["look"]}
