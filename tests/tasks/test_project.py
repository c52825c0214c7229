"""Which folder is meant, and who may go there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from pegboard.result import ToolErrorCode, ToolFailure, unavailable
from pegboard.toolsets.tasks.project import Project, folder_of

pytestmark = pytest.mark.anyio


def workspace(
    here: Path, roots: Sequence[Path | str] | None = None, configured: str | None = None, *, elsewhere: bool = False
) -> Project:
    """What a client with these roots may mean."""

    async def named() -> Sequence[str] | None:
        return None if roots is None else [root if isinstance(root, str) else root.as_uri() for root in roots]

    return Project(named, configured=lambda: configured, here=lambda: here, is_elsewhere=lambda: elsewhere)


def project(folder: Path) -> Path:
    """A folder with an `openspec`; gives that."""
    (folder / "openspec").mkdir(parents=True)
    return (folder / "openspec").resolve()


async def test_the_clients_folder_comes_first(tmp_path: Path) -> None:
    """The first root that has an openspec, then what is configured, then where Pegboard stands."""
    one, two, three, here = (tmp_path / name for name in ("one", "two", "three", "here"))
    one.mkdir()
    found, configured, around = project(two), project(three), project(here)
    assert await workspace(here, [one, two, three], str(three)).folder() == found
    assert await workspace(here, None, str(three)).folder() == configured
    assert await workspace(here).folder() == around
    assert await workspace(here, [found]).folder() == found


async def test_nothing_to_go_by_is_said(tmp_path: Path) -> None:
    """Each way of having no folder has its own words."""
    for asked, words in (
        (workspace(tmp_path), "give path, or set workspace"),
        (workspace(tmp_path, []), "no folder open"),
        (workspace(tmp_path, [tmp_path]), "openspec init"),
        (workspace(tmp_path, None, str(tmp_path / "nowhere")), "in the workspace of the config"),
    ):
        with pytest.raises(ToolFailure, match=words) as failed:
            await asked.folder()
        assert failed.value.error.code == ToolErrorCode.NOT_FOUND


async def test_a_path_may_be_told_in_many_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The project, its openspec, relative to the client's folder, from home, as an address."""
    found = project(tmp_path / "a b")
    monkeypatch.setenv("HOME", str(tmp_path))
    asked = workspace(tmp_path, [tmp_path])
    for path in (str(tmp_path / "a b"), str(found), "a b", "./a b/openspec", "~/a b", (tmp_path / "a b").as_uri()):
        assert await asked.folder(path) == found
    assert await workspace(tmp_path).folder("a b") == found
    assert await workspace(Path("/"), None, str(tmp_path)).folder("a b") == found


async def test_a_client_stays_within_its_roots(tmp_path: Path) -> None:
    """Not by a path, not by `..`, not by a link, be it the project's or openspec itself."""
    root, outside = tmp_path / "root", tmp_path / "root-2"
    project(root)
    secret = project(outside)
    (root / "link").symlink_to(outside)
    (root / "half").mkdir()
    (root / "half" / "openspec").symlink_to(secret)
    asked = workspace(root, [root])
    for path in (str(outside), "../root-2", str(root / ".." / "root-2"), "link", "half", outside.as_uri(), "/"):
        with pytest.raises(ToolFailure, match="outside of the folders that your client named") as failed:
            await asked.folder(path)
        assert failed.value.error.code == ToolErrorCode.INVALID_INPUT
    # Who names no roots is bound by none.
    assert await workspace(root).folder(str(outside)) == secret
    assert await workspace(root, [root, outside]).folder(str(outside)) == secret


async def test_a_root_that_is_a_link_is_where_it_leads(tmp_path: Path) -> None:
    """Clients name folders as their users see them."""
    found = project(tmp_path / "real")
    (tmp_path / "seen").symlink_to(tmp_path / "real")
    assert await workspace(tmp_path, [tmp_path / "seen"]).folder() == found
    assert await workspace(tmp_path, [tmp_path / "seen"]).folder(str(tmp_path / "real")) == found


@pytest.mark.parametrize(
    "path", ["\0", "x" * 5000, "~nobody-of-that-name/x", "\ud800", "file://other/x", "file://[", "file:%00"]
)
async def test_no_path_makes_it_stumble(tmp_path: Path, path: str) -> None:
    """A clear refusal."""
    for asked in (workspace(tmp_path), workspace(tmp_path, [tmp_path]), workspace(tmp_path, elsewhere=True)):
        with pytest.raises(ToolFailure) as failed:
            await asked.folder(path)
        assert failed.value.error.code in {ToolErrorCode.INVALID_INPUT, ToolErrorCode.NOT_FOUND}


def test_addresses_are_folders() -> None:
    """As clients name their roots."""
    assert folder_of("file:///a/b%20c/%E6%97%A5") == Path("/a/b c/日")
    assert folder_of("FILE://localhost/a") == Path("/a")
    assert folder_of("/a/b") is None


async def test_folders_of_other_machines_are_none_of_ours(tmp_path: Path) -> None:
    """A client may name what cannot be reached from here: it binds all the same."""
    found = project(tmp_path / "a")
    for other in ("vscode-remote://wsl/home/me", "file://server/share", "untitled:x"):
        assert await workspace(tmp_path, [other, tmp_path / "a"]).folder() == found
        with pytest.raises(ToolFailure, match="outside of the folders"):
            await workspace(tmp_path, [other]).folder(str(tmp_path / "a"))


async def test_a_client_that_does_not_say_its_bounds_may_name_no_path(tmp_path: Path) -> None:
    """What is configured is open to it, and nothing else."""
    found = project(tmp_path / "a")

    async def silent() -> Sequence[str] | None:
        raise unavailable("your client did not say which folders it works in")

    asked = Project(silent, configured=lambda: str(tmp_path / "a"), here=lambda: tmp_path)
    assert await asked.folder() == found
    with pytest.raises(ToolFailure, match="did not say"):
        await asked.folder(str(tmp_path / "a"))


async def test_a_client_elsewhere_stays_within_the_workspace(tmp_path: Path) -> None:
    """Whatever it names: its own folders, an address, a path. Below the workspace it may go."""
    open_to_all, secret = tmp_path / "open", tmp_path / "secret"
    found, below, hidden = project(open_to_all), project(open_to_all / "below"), project(secret)
    (open_to_all / "link").symlink_to(secret)
    for asked in (
        workspace(tmp_path, None, str(open_to_all), elsewhere=True),
        workspace(open_to_all, None, elsewhere=True),
    ):
        assert await asked.folder() == found
        assert await asked.folder("below") == await asked.folder(str(open_to_all / "below")) == below
        for path in (str(secret), str(hidden), "..", "link", secret.as_uri(), "~", "/", str(tmp_path / "nowhere")):
            with pytest.raises(ToolFailure, match="outside of the workspace that is open") as failed:
                await asked.folder(path)
            assert failed.value.error.code == ToolErrorCode.INVALID_INPUT
    named = workspace(tmp_path, [secret, open_to_all / "below"], str(open_to_all), elsewhere=True)
    assert await named.folder() == below
    with pytest.raises(ToolFailure, match="outside of the folders"):
        await named.folder(str(open_to_all))
    # Its own projects are none of ours: it has to say that it means one of these.
    for roots in ([secret], ["file:///Users/me/shop"], []):
        foreign = workspace(tmp_path, roots, str(open_to_all), elsewhere=True)
        with pytest.raises(ToolFailure, match="no folder open that is one of this machine"):
            await foreign.folder()
        assert await foreign.folder("below") == below
        with pytest.raises(ToolFailure, match="outside of the workspace"):
            await foreign.folder(str(secret))


async def test_a_refusal_says_no_more_than_the_caller_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not where `~`, links and relative paths lead, not where Pegboard stands, not whether there is such a folder."""
    there, home = tmp_path / "there", tmp_path / "home of somebody"
    there.mkdir()
    home.mkdir()
    (there / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(home))
    said: set[str] = set()
    for path in (None, "~", "link", "nowhere", ".", "..", "file:%00", "x" * 300):
        for configured in (None, str(there)):
            with pytest.raises(ToolFailure) as failed:
                await workspace(there, None, configured).folder(path)
            assert str(tmp_path) not in failed.value.error.message
            said.add(failed.value.error.message.replace(repr(path), "…"))
    assert "path …: there is no openspec folder there; `openspec init` makes one" in said


def test_only_clients_of_this_machine_are_told_where_a_folder_is(tmp_path: Path) -> None:
    """Others are told where it is within the workspace."""
    found, below = project(tmp_path), project(tmp_path / "below")
    assert workspace(tmp_path).display(found) == str(found)
    there = workspace(tmp_path, elsewhere=True)
    assert (there.display(found), there.display(below)) == ("openspec", "below/openspec")
