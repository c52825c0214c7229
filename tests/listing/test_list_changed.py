"""Notices: only for a change, few for a burst, and the last one never lost."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pegboard.catalog.registry import ToolRegistry
from pegboard.listing import list_changed as module
from pegboard.listing.list_changed import ListChangedNotifier
from pegboard.listing.view import EVERYTHING, Filter, View

pytestmark = pytest.mark.anyio

GIT = Filter.of("git")


class Board:
    """A registry and its notices, joined as the real board joins them."""

    def __init__(self) -> None:
        self.looks = 0
        self.notices = ListChangedNotifier(self.view)
        self.registry = ToolRegistry(on_change=self.notices.schedule_check)

    def view(self, wanted: Filter) -> View[Any]:
        self.looks += 1
        return View.of(tool for tool in self.registry.all() if wanted.admits(tool))

    def offer(self, server: str, *names: str) -> None:
        """A server has exactly these tools from now on."""
        self.registry.register_mcp_tools(server, [{"name": name, "inputSchema": {"type": "object"}} for name in names])


@dataclass
class Client:
    """Subscribes, reads lists, and counts what it is told."""

    board: Board
    wanted: Filter = EVERYTHING
    told: int = 0
    seen: int | None = None
    outdated: bool = False

    def __post_init__(self) -> None:
        self.leave = self.board.notices.subscribe(self.wanted, self.hear)

    def hear(self) -> None:
        self.told += 1
        self.outdated = True

    def read(self) -> None:
        view = self.board.view(self.wanted)
        self.board.notices.record_served(self.wanted, view)
        self.seen, self.outdated = view.digest, False


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look is due at once: the pause is only how long a burst may take."""
    monkeypatch.setattr(module, "PAUSE", 0.0)


@pytest.fixture
def board() -> Board:
    """An empty board."""
    return Board()


async def look() -> None:
    """Let a look that is due happen."""
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_change_is_told(board: Board) -> None:
    """A tool more, a tool less and a tool that changed are each told once."""
    client = Client(board)
    for names in (["a"], ["a", "b"], ["b"], []):
        board.offer("git", *names)
        await look()
    assert client.told == 4
    board.registry.remove_server_tools("git")
    await look()
    assert client.told == 4


async def test_nothing_is_told_when_nothing_changed(board: Board) -> None:
    """The same tools again, and a mere suspicion, are no news."""
    board.offer("git", "a")
    client = Client(board)
    board.offer("git", "a")
    await look()
    board.notices.schedule_check()
    await look()
    assert client.told == 0


async def test_there_and_back_is_no_change_for_who_saw_nothing_of_it(board: Board) -> None:
    """A list that is as it was before anybody looked is no news."""
    board.offer("git", "a")
    client = Client(board)
    client.read()
    board.offer("git", "b")
    board.offer("git", "a")
    await look()
    assert client.told == 0


async def test_there_and_back_is_told_to_who_was_given_the_list_between(board: Board) -> None:
    """X → Y, a client is served Y, back to X before the look: it holds Y and must hear of X."""
    board.offer("git", "x")
    client = Client(board)
    client.read()
    board.offer("git", "y")
    client.read()
    board.offer("git", "x")
    await look()
    assert client.told == 1
    client.read()
    board.notices.schedule_check()
    await look()
    assert client.told == 1


async def test_a_burst_is_one_notice(board: Board) -> None:
    """Fifty changes at once are looked at once and told once."""
    client = Client(board)
    before = board.looks
    for number in range(50):
        board.offer("git", f"tool_{number}")
    await look()
    assert client.told == 1
    assert board.looks == before + 1


async def test_a_change_after_a_notice_is_told_again(board: Board) -> None:
    """A listener that brings about another change is told of that too."""
    told: list[int] = []

    def hear() -> None:
        told.append(board.registry.generation)
        if len(told) == 1:
            board.offer("git", "second")

    board.notices.subscribe(EVERYTHING, hear)
    board.offer("git", "first")
    await look()
    await look()
    assert len(told) == 2


async def test_a_notice_comes_soon_by_itself(board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real pause a burst is told once, without anybody asking for it."""
    monkeypatch.undo()
    assert 0 < module.PAUSE <= 0.5
    heard = asyncio.Event()
    told: list[None] = []

    def hear() -> None:
        told.append(None)
        heard.set()

    board.notices.subscribe(EVERYTHING, hear)
    for number in range(5):
        board.offer("git", f"tool_{number}")
    assert told == []
    with anyio.fail_after(30):
        await heard.wait()
    assert len(told) == 1


async def test_each_filter_hears_of_its_own_list(board: Board) -> None:
    """A client is told of changes in what its filter leaves, and of no others."""
    everything, git, docs = Client(board), Client(board, GIT), Client(board, Filter.of(None, "docs__"))
    board.offer("git", "a")
    await look()
    assert (everything.told, git.told, docs.told) == (1, 1, 0)
    board.offer("docs", "a")
    await look()
    assert (everything.told, git.told, docs.told) == (2, 1, 1)


async def test_removing_a_server_is_told(board: Board) -> None:
    """When a server's tools go, its readers hear of it."""
    board.offer("git", "a")
    client = Client(board, GIT)
    board.registry.remove_server_tools("git")
    await look()
    assert client.told == 1


async def test_who_unsubscribed_hears_nothing(board: Board) -> None:
    """After unsubscribing there are no notices, for the others there are; doing it twice is harmless."""
    gone, stays = Client(board), Client(board)
    gone.leave()
    gone.leave()
    board.offer("git", "a")
    await look()
    assert (gone.told, stays.told) == (0, 1)


async def test_a_late_unsubscribe_does_not_end_a_newer_subscription(board: Board) -> None:
    """Ending an old subscription a second time leaves those that came later alone."""
    old = Client(board)
    old.leave()
    new = Client(board)
    old.leave()
    board.offer("git", "a")
    await look()
    assert new.told == 1


async def test_who_subscribes_again_starts_from_the_list_of_now(board: Board) -> None:
    """Changes made while nobody listened are no news to who comes after them."""
    Client(board).leave()
    board.offer("git", "a")
    client = Client(board)
    await look()
    assert client.told == 0
    board.offer("git", "b")
    await look()
    assert client.told == 1


async def test_a_listener_that_raises_stops_nobody(board: Board) -> None:
    """The others are told all the same, and the log says that one failed."""

    def bad() -> None:
        raise RuntimeError("gone")

    board.notices.subscribe(EVERYTHING, bad)
    same, other = Client(board), Client(board, GIT)
    board.notices.subscribe(GIT, bad)
    with capture_logs() as logs:
        board.offer("git", "a")
        await look()
    assert (same.told, other.told) == (1, 1)
    assert [(entry["event"], entry["error"]) for entry in logs if entry["log_level"] == "warning"] == [
        ("notice.failed", "RuntimeError"),
        ("notice.failed", "RuntimeError"),
    ]
    board.offer("git", "b")
    await look()
    assert (same.told, other.told) == (2, 2)


async def test_nothing_is_told_after_closing(board: Board) -> None:
    """Closing takes back even the notice that was due."""
    client = Client(board)
    board.offer("git", "a")
    board.notices.close()
    board.offer("git", "b")
    await look()
    assert client.told == 0


def test_a_change_before_there_is_a_loop_is_fine(board: Board) -> None:
    """Tools can be registered before anything runs: nobody is there to be told."""
    board.offer("git", "a")
    assert [tool.name for tool in board.registry.all()] == ["git__a"]


@dataclass
class Story:
    """A random history of one board and its clients."""

    board: Board = field(default_factory=Board)
    clients: list[Client] = field(default_factory=list[Client])

    async def tell(self, steps: list[tuple[str, int]]) -> None:
        for what, number in steps:
            match what:
                case "offer":
                    self.board.offer("git", *["a", "b"][:number])
                case "join":
                    self.clients.append(Client(self.board, [EVERYTHING, GIT, Filter.of("docs")][number]))
                case "leave" if self.clients:
                    self.clients.pop(number % len(self.clients)).leave()
                case "read" if self.clients:
                    self.clients[number % len(self.clients)].read()
                case _:
                    await look()
        await look()
        await look()


@given(st.lists(st.tuples(st.sampled_from(["offer", "offer", "join", "read", "leave", "look"]), st.integers(0, 2))))
def test_the_last_notice_is_never_lost(steps: list[tuple[str, int]]) -> None:
    """In every order of events, a client that holds an old list in the end has been told since it read it."""
    story = Story()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PAUSE", 0.0)
        asyncio.run(story.tell(steps))
    for client in story.clients:
        held_is_old = client.seen is not None and client.seen != story.board.view(client.wanted).digest
        assert client.outdated or not held_is_old
