"""Which config file is used, and which only once it is trusted."""

import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pegboard.config import ConfigError, Location, identity, locate, read_settings, run_file, state_folder
from pegboard.config.edit import add_server
from pegboard.config.locate import _FOLDERS, trust_store, user_config


def trust(folder: Path, environment: Mapping[str, str]) -> None:
    """Trust what the config file of a folder says now."""
    file = folder / "pegboard.json"
    trust_store(environment).add(file, file.read_bytes())


def is_trusted(folder: Path, environment: Mapping[str, str]) -> bool:
    file = folder / "pegboard.json"
    return trust_store(environment).holds(file, file.read_bytes())


class Places:
    """A folder for each place where a config file can be."""

    def __init__(self, root: Path) -> None:
        self.here = root / "here"
        self.here.mkdir()
        self.environment = {"PEGBOARD_STATE_DIR": str(root / "s"), "PEGBOARD_CONFIG_DIR": str(root / "c")}
        self.given = root / "given.json"
        self.chosen = root / "chosen.json"
        self.local = self.here / "pegboard.json"
        self.user = root / "c" / "config.json"
        for path in (self.given, self.chosen, self.local, self.user):
            path.parent.mkdir(exist_ok=True)
            path.write_text("{}")

    def locate(self, given: Path | None = None, **environment: str) -> Location:
        return locate(given, self.environment | environment, self.here)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


# The order


def test_the_option_comes_first(places: Places) -> None:
    """`--config` beats the environment and every file that is just there."""
    trust(places.here, places.environment)
    assert places.locate(places.given, PEGBOARD_CONFIG=str(places.chosen)) == Location(places.given, exists=True)


def test_the_environment_comes_second(places: Places) -> None:
    """`PEGBOARD_CONFIG` beats every file that is just there, trusted or not, and without a remark."""
    trust(places.here, places.environment)
    assert places.locate(PEGBOARD_CONFIG=str(places.chosen)) == Location(places.chosen, exists=True)


def test_this_folder_comes_third_once_trusted(places: Places) -> None:
    """A trusted `./pegboard.json` beats the user's own config."""
    trust(places.here, places.environment)
    assert places.locate() == Location(places.local, exists=True, needs_trust=True)


def test_a_change_needs_trust_anew(places: Places) -> None:
    """Trust is in what was looked at: another content is not used, and the remark says why and what to do."""
    trust(places.here, places.environment)
    places.local.write_text('{"mcpServers": {}}')
    found = places.locate()
    assert (found.path, found.needs_trust) == (places.user, False)
    assert "changed since it was trusted" in (found.remark or "")
    with pytest.raises(ConfigError, match="changed since it was trusted"):
        read_settings(places.local, places.environment, needs_trust=True)
    trust(places.here, places.environment)
    assert places.locate() == Location(places.local, exists=True, needs_trust=True)
    assert read_settings(places.local, places.environment, needs_trust=True).needs_trust


def test_a_change_of_our_own_stays_trusted(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """What Pegboard writes into a trusted file is trusted; into one that changed before, it is not."""
    monkeypatch.setenv("PEGBOARD_STATE_DIR", places.environment["PEGBOARD_STATE_DIR"])
    trust(places.here, places.environment)
    add_server(places.local, "a", {"command": "a"})
    assert is_trusted(places.here, places.environment)
    places.local.write_text('{"mcpServers": {"evil": {"command": "evil"}}}')
    add_server(places.local, "b", {"command": "b"})
    assert not is_trusted(places.here, places.environment)


def test_an_untrusted_folder_is_passed_over_with_a_remark(places: Places) -> None:
    """A `./pegboard.json` that nobody trusted is not used, and the remark says how to change that."""
    found = places.locate()
    assert (found.path, found.exists) == (places.user, True)
    assert found.remark is not None
    assert str(places.local) in found.remark
    assert "`pegboard trust`" in found.remark


def test_the_users_config_comes_last(places: Places) -> None:
    """Without anything else it is the user's config, and there is nothing to remark."""
    places.local.unlink()
    assert places.locate(PEGBOARD_CONFIG="") == Location(places.user, exists=True)


def test_trust_without_a_file_changes_nothing(places: Places) -> None:
    """A trusted folder in which there is no file, or only a folder of that name, leads to the user's config."""
    trust(places.here, places.environment)
    places.local.unlink()
    assert places.locate() == Location(places.user, exists=True)
    places.local.mkdir()
    assert places.locate() == Location(places.user, exists=True)


@pytest.mark.parametrize("which", ["given", "chosen", "user"])
def test_a_file_that_is_not_there_is_still_the_one(places: Places, which: str) -> None:
    """What was asked for is never silently replaced by another file: it may be about to be written."""
    places.local.unlink()
    path: Path = getattr(places, which)
    path.unlink()
    given = path if which == "given" else None
    environment = {"PEGBOARD_CONFIG": str(path)} if which == "chosen" else {}
    assert places.locate(given, **environment) == Location(path, exists=False)


def test_the_current_folder_is_the_default(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a folder given, it is the one that Pegboard was started in."""
    monkeypatch.chdir(places.here)
    trust(Path(), places.environment)
    assert locate(None, places.environment) == Location(places.local, exists=True, needs_trust=True)


def test_relative_paths_become_absolute(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path is fixed at once, so that a change of folder cannot move it."""
    monkeypatch.chdir(places.here)
    assert places.locate(Path("pegboard.json")) == Location(places.local, exists=True)
    assert places.locate(PEGBOARD_CONFIG="pegboard.json") == Location(places.local, exists=True)


@pytest.mark.skipif(sys.platform == "win32", reason="homes are found otherwise there")
def test_the_home_folder_is_expanded(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    """`~` means the home folder in an option and in a variable that no shell has expanded."""
    monkeypatch.setenv("HOME", str(places.here))
    assert places.locate(Path("~/pegboard.json")) == Location(places.local, exists=True)
    assert places.locate(PEGBOARD_CONFIG="~/pegboard.json") == Location(places.local, exists=True)


def test_the_home_of_nobody_is_a_missing_file(places: Places) -> None:
    """A misspelt user in `~user/…` is a file that is not there, not a crash."""
    found = places.locate(Path("~nobody-of-this-name/pegboard.json"))
    assert (found.exists, found.path.is_absolute()) == (False, True)
    assert places.locate(PEGBOARD_CONFIG="~nobody-of-this-name/x.json").exists is False


def test_folders_follow_the_environment(tmp_path: Path) -> None:
    """State and config have folders of their own, which variables can move."""
    environment = {"PEGBOARD_STATE_DIR": str(tmp_path / "s"), "PEGBOARD_CONFIG_DIR": str(tmp_path / "c")}
    assert state_folder(environment) == tmp_path / "s"
    assert user_config(environment) == tmp_path / "c" / "config.json"
    assert user_config({}).parts[-2:] == ("pegboard", "config.json")
    assert state_folder({}).is_absolute()


# Trust


def test_trust_survives(places: Places) -> None:
    """Trust is on disk: it holds as often as it is asked for, and giving it twice is fine."""
    assert is_trusted(places.here, places.environment) is False
    trust(places.here, places.environment)
    trust(places.here, places.environment)
    assert is_trusted(places.here, dict(places.environment)) is True
    (record,) = (Path(places.environment["PEGBOARD_STATE_DIR"]) / "trusted").iterdir()
    # It holds a copy of the file, which may hold secrets.
    assert stat.S_IMODE(record.stat().st_mode) == 0o600


def test_trust_is_per_folder(places: Places, tmp_path: Path) -> None:
    """Trusting one folder trusts neither the one above, nor the one below, nor one with a similar name."""
    for name in ("here/below", "here2", "there"):
        (tmp_path / name).mkdir()
    for folder in (tmp_path, *(tmp_path / name for name in ("here/below", "here2", "there"))):
        (folder / "pegboard.json").write_text("{}")
    trust(places.here, places.environment)
    trust(tmp_path / "there", places.environment)
    trusted = [tmp_path, *(tmp_path / name for name in ("here", "here/below", "here2", "there"))]
    assert [is_trusted(folder, places.environment) for folder in trusted] == [False, True, False, False, True]


def test_trust_is_per_user(places: Places, tmp_path: Path) -> None:
    """What one state folder trusts is unknown to another."""
    trust(places.here, places.environment)
    other = {"PEGBOARD_STATE_DIR": str(tmp_path / "not" / "there" / "yet")}
    assert is_trusted(places.here, other) is False
    (tmp_path / "pegboard.json").write_text("{}")
    trust(tmp_path, other)
    assert [is_trusted(folder, other) for folder in (places.here, tmp_path)] == [False, True]


def test_trust_sees_through_links(places: Places, tmp_path: Path) -> None:
    """A folder is the same folder by whatever path it is reached."""
    (tmp_path / "link").symlink_to(places.here, target_is_directory=True)
    trust(tmp_path / "link", places.environment)
    assert is_trusted(places.here, places.environment) is True
    assert is_trusted(places.here / ".." / "here", places.environment) is True


@pytest.mark.parametrize("content", [b"", b"{", b"null", b"7", b"\xff", b"[]", b'{"a": 1}'])
def test_a_damaged_trust_file_trusts_nothing(places: Places, content: bytes) -> None:
    """A trust file that cannot be read trusts no folder, and the next trust mends it."""
    file = trust_store(places.environment).record(places.local)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    assert is_trusted(places.here, places.environment) is False
    trust(places.here, places.environment)
    assert is_trusted(places.here, places.environment) is True


# Identity


def test_identity_is_stable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every way to write a file's path gives the same identity, whether the file exists or not."""
    path = tmp_path / "pegboard.json"
    before = identity(path)
    path.write_text("{}")
    (tmp_path / "link.json").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    same = [path, Path("pegboard.json"), tmp_path / "x" / ".." / "pegboard.json", tmp_path / "link.json"]
    assert {identity(one) for one in same} == {before}
    assert identity(tmp_path / "other.json") != before


@pytest.mark.skipif(sys.platform == "win32", reason="a path of that system")
def test_identity_is_the_same_in_every_process() -> None:
    """It joins a running gateway and its clients, so it may depend on nothing but the path."""
    assert identity(Path("/nowhere/pegboard.json")) == "2b685ff12854eaca"


@pytest.mark.skipif(sys.platform == "win32", reason="names are texts there")
def test_identity_of_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    """A folder from an old system can have a name that is no text, and still be used."""
    folders = [Path(os.fsdecode(os.fsencode(tmp_path) + name)) for name in (b"/\xe9", b"/\xe8")]
    one, other = (identity(folder / "pegboard.json") for folder in folders)
    assert one != other


def test_run_file(tmp_path: Path) -> None:
    """Each gateway has a run file of its own in the state folder, named after its config and its process."""
    environment = {"PEGBOARD_STATE_DIR": str(tmp_path / "s")}
    path = tmp_path / "pegboard.json"
    assert run_file(path, environment) == tmp_path / "s" / "run" / f"{identity(path)}-{os.getpid()}.json"
    assert run_file(tmp_path / "other.json", environment) != run_file(path, environment)


FOLDERS = {
    "win32": ("C:\\Local/pegboard", "C:\\Local/pegboard"),
    "darwin": ("~/Library/Application Support/pegboard", "~/Library/Application Support/pegboard"),
    "linux": ("~/.config/pegboard", "~/.local/state/pegboard"),
}


@pytest.mark.parametrize("system", FOLDERS)
def test_the_folders_of_each_system_are_those_of_the_docs(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Config and state, each in one folder of the name pegboard."""
    from platformdirs import macos, unix, windows

    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(windows, "get_win_folder", lambda _: "C:\\Local")
    kind = {"win32": windows.Windows, "darwin": macos.MacOS, "linux": unix.Unix}[system]
    folders = kind(_FOLDERS.appname, _FOLDERS.appauthor)
    home = str(Path.home())
    found = (folders.user_config_dir, folders.user_state_dir)
    assert tuple(each.replace(home, "~") for each in found) == FOLDERS[system]
    page = (Path(__file__).parent.parent.parent / "docs" / "install.md").read_text("utf-8")
    for folder in FOLDERS[system]:
        assert "`" + folder.replace("C:\\Local/", "%LOCALAPPDATA%\\") in page
