"""What every test gets: a home of its own, and no settings of the machine it runs on."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog
from hypothesis import settings

from pegboard.log import _ToStructlog, logger
from pegboard.storage import Storage, open_storage

if TYPE_CHECKING:
    from postgres import PostgresServer


# How long an example takes depends on the machine and on what else it does.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")


def pytest_configure() -> None:
    """What a test starts can be interrupted, also where this run is a background job, which has SIGINT ignored."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is there before the first test stays: no collection of garbage has to look through it again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """What is said to hold on both paths is tested on both."""
    if metafunc.definition.get_closest_marker("both_paths") is not None:
        metafunc.parametrize("protocol_path", ["fast", "full"], indirect=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A log line with half of a surrogate pair in it cannot be sent from a worker, which would end all of the run."""
    report = yield
    report.sections = [(name, text.encode("utf-8", "backslashreplace").decode()) for name, text in report.sections]
    return report


# For every test: pytest sets up no fixture that only a hook has named.
@pytest.fixture(autouse=True)
def protocol_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """The path that plain requests take in a gateway of this test, be it in this process or in one of its own."""
    chosen: str | None = getattr(request, "param", None)
    if chosen is not None:
        monkeypatch.setenv("PEGBOARD_FAST_PATH", "on" if chosen == "fast" else "off")
    return chosen


@pytest.fixture
def anyio_backend() -> str:
    """Pegboard runs on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def home_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """A home for what several tests share, which begins before a test has its own: whoever runs the tests may have a
    Pegboard, of another version too."""
    home = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patched:
        for name, folder in (("HOME", "home"), ("PEGBOARD_STATE_DIR", "state"), ("PEGBOARD_CONFIG_DIR", "config")):
            patched.setenv(name, str(home / folder))
        patched.delenv("PEGBOARD_CONFIG", raising=False)
        yield


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """State, config and home in the test's own folder, and no server from the environment."""
    # Whoever runs the tests has chats of their own.
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    for name in ("VSCODE_PORTABLE", "VSCODE_APPDATA", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    # How long a list waits for servers never seen: several tests at once make every start slower than it is.
    monkeypatch.setattr("pegboard.board.NEW_SERVER_WAIT", 1.5)
    # `pegboard` is called by its name in messages where the shell finds it.
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PEGBOARD_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PEGBOARD_CONFIG_DIR", str(tmp_path / "config"))
    # No test writes into the keyring of whoever runs the tests.
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    for name in ("PEGBOARD_SECRET_KEY", "PEGBOARD_SECRET_KEY_FILE"):
        monkeypatch.delenv(name, raising=False)
    # No test asks the registry of the whole world: nobody listens there.
    monkeypatch.setenv("PEGBOARD_REGISTRY", "http://127.0.0.1:9")
    for name in list(os.environ):
        if name.endswith(("_MCP_URL", "_MCP_ENABLED")) or name in {"PEGBOARD_CONFIG", "PEGBOARD_LOG"}:
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def own_logging() -> Generator[None]:
    """Whatever a test sets up is gone after it: logging has one root for everyone."""
    root, config = logging.getLogger(), structlog.get_config()
    level, before = root.level, dict(vars(logger()))
    was_configured = structlog.is_configured()
    yield
    vars(logger()).update(before, destination=None)
    for handler in [handler for handler in root.handlers if isinstance(handler, _ToStructlog)]:
        root.removeHandler(handler)
    root.setLevel(level)
    if was_configured:
        structlog.configure(**config)
    else:
        structlog.reset_defaults()


@pytest.fixture(scope="session")
def postgres() -> Generator[PostgresServer]:
    """A real PostgreSQL, started by the first test that needs it."""
    from postgres import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Generator[str]:
    """The address of an empty database of the test's own, password and all."""
    with postgres.database() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The `storage` setting of an empty place, on each database in turn."""
    if request.param == "sqlite":
        return f"sqlite:{tmp_path / 'state' / 'pegboard.db'}"
    return request.getfixturevalue("postgres_url")


@pytest.fixture
async def sqlite_storage(tmp_path: Path) -> AsyncGenerator[Storage]:
    """An open storage in the file `pegboard.db` of the test's own folder."""
    storage = open_storage(f"sqlite:{tmp_path / 'pegboard.db'}")
    await storage.open()
    yield storage
    await storage.close()


@pytest.fixture
async def storage(place: str) -> AsyncGenerator[Storage]:
    """An open storage at that place."""
    storage = open_storage(place)
    await storage.open()
    yield storage
    await storage.close()
