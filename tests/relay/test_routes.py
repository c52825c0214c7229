"""Routes: where something goes that Pegboard has never heard of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.names import fold_server_name
from pegboard.protocol.codes import METHOD_NOT_FOUND
from pegboard.protocol.eras import RELATED_TASK_KEY
from pegboard.protocol.methods import TASK_METHODS
from pegboard.relay import routes as module
from pegboard.relay.routes import Routes
from pegboard.servers.attribution import SERVER_KEY
from pegboard.servers.errors import RpcError
from pegboard.servers.message import Message, Params

SEEN = ("git", "docs", "db")
NONE: Mapping[str, Mapping[str, Any]] = {}


def owner(
    routes: Routes,
    method: str,
    params: Params = NONE,
    *,
    identity: str = "a",
    seen: tuple[str, ...] = SEEN,
    capabilities: Mapping[str, Mapping[str, Any]] = NONE,
) -> str | None:
    """The server, or none where it cannot be told."""
    try:
        return routes.owner(identity, method, params, seen, capabilities)
    except RpcError:
        return None


def test_the_only_server_gets_everything() -> None:
    """With one server in sight there is no doubt."""
    assert owner(Routes(), "anything/at/all", seen=("git",)) == "git"
    assert owner(Routes(), "notifications/anything", seen=("git",)) == "git"


def test_among_several_it_cannot_be_told_and_the_refusal_says_what_helps() -> None:
    """It names the method, how many servers there are, and both ways out."""
    with pytest.raises(RpcError) as refused:
        Routes().owner("a", "custom/thing", {}, SEEN, {})
    message = refused.value.message
    assert refused.value.code == METHOD_NOT_FOUND
    assert all(part in message for part in ("custom/thing", "3 servers", SERVER_KEY, "/mcp?server=NAME"))


def test_with_no_server_it_is_refused() -> None:
    """Nobody could be meant."""
    assert owner(Routes(), "custom/thing", seen=()) is None
    assert owner(Routes(), "custom/thing", {"_meta": {SERVER_KEY: "git"}}, seen=()) is None


def test_who_is_named_is_meant() -> None:
    """Even against what the capabilities say; one out of sight is refused by its name."""
    able = {"docs": {"custom": {}}}
    assert owner(Routes(), "custom/thing", {"_meta": {SERVER_KEY: "db"}}, capabilities=able) == "db"
    with pytest.raises(RpcError, match="hidden"):
        Routes().owner("a", "custom/thing", {"_meta": {SERVER_KEY: "hidden"}}, SEEN, able)


@pytest.mark.parametrize("named", ["GitHub-Docs", "github_docs", "github docs", "GITHUB_DOCS"])
def test_a_server_may_be_named_as_the_config_names_it(named: str) -> None:
    """Its name in the config and the form of it that stands in tools' names are the same server."""
    assert owner(Routes(), "custom/thing", {"_meta": {SERVER_KEY: named}}, seen=("git", "github_docs")) == "github_docs"


@pytest.mark.parametrize("meta", [None, "git", [], {SERVER_KEY: None}, {SERVER_KEY: ["git"]}, {SERVER_KEY: 5}])
def test_a_name_of_the_wrong_shape_names_nobody(meta: Any) -> None:
    """It is left aside, and the other ways are tried."""
    assert owner(Routes(), "custom/thing", {"_meta": meta}, capabilities={"docs": {"custom": {}}}) == "docs"


@pytest.mark.parametrize("method", ["custom/thing", "notifications/custom/thing", "custom"])
def test_the_one_that_announced_the_capability_is_meant(method: str) -> None:
    """A method's first part is the capability it belongs to; two that have it are one too many."""
    assert owner(Routes(), method, capabilities={"docs": {"custom": {}}, "git": {"customs": {}}}) == "docs"
    assert owner(Routes(), method, capabilities={"docs": {"custom": {}}, "git": {"custom": {}}}) is None
    assert owner(Routes(), method, capabilities={"hidden": {"custom": {}}}) is None


@pytest.mark.parametrize("result", [{"taskId": "t"}, {"task": {"taskId": "t", "status": "working"}}])
def test_a_task_leads_back_to_its_server(result: Message) -> None:
    """In either place that the two eras have for it, and for the client that was given it alone."""
    routes = Routes()
    routes.learn("a", "docs", result)
    able = {server: {"tasks": {}} for server in SEEN}
    assert owner(routes, "tasks/get", {"taskId": "t"}, capabilities=able) == "docs"
    assert owner(routes, "tasks/get", {"taskId": "t"}, identity="b", capabilities=able) is None
    assert owner(routes, "tasks/get", {"taskId": "u"}, capabilities=able) is None
    assert owner(routes, "tasks/get", {"taskId": "t"}, seen=("git", "db"), capabilities=able) is None


@pytest.mark.parametrize("name", ["taskId", "TaskID", "task_id", "task\u200bId", "task" + "\u200b" * 200 + "Id"])
@pytest.mark.parametrize("method", ["task/get", "custom/thing", "notifications/tasks/status", "tools/call"])
def test_nothing_goes_on_about_another_clients_task(method: str, name: str) -> None:
    """Wherever its id stands, and however its name is spelt; the client's own, and one that nobody knows, go on."""
    routes = Routes()
    routes.learn("a", "docs", {"taskId": "t"})
    for place in ({name: "t"}, {"task": {name: "t"}}, {"_meta": {RELATED_TASK_KEY: {name: "t"}}}):
        meta = place.get("_meta", {})
        assert isinstance(meta, dict)
        params = {**place, "_meta": {**meta, SERVER_KEY: "docs"}}
        assert owner(routes, method, params) == "docs"
        assert owner(routes, method, params, identity="b") is None
        assert owner(routes, method, place, identity="b", seen=("docs",)) is None
        # Another server's task of this name is another one.
        assert owner(routes, method, place, identity="b", seen=("git",)) == "git"
    assert owner(routes, method, {"text": "t", "taskId": "u", "task": "t"}, identity="b", seen=("docs",)) == "docs"


@pytest.mark.parametrize("method", ["tasks/delete", "tasks/watch", "Tasks.pause", "tasks/results"])
def test_whatever_is_about_tasks_needs_one_of_the_client(method: str) -> None:
    """Also where nobody knows the method."""
    routes = Routes()
    routes.learn("a", "docs", {"taskId": "t"})
    assert owner(routes, method, {"taskId": "t"}, seen=("docs",)) == "docs"
    for params in ({"taskId": "u"}, {"taskId": ["t"]}, {}, {"task_id": "t"}):
        assert owner(routes, method, params, seen=("docs",)) is None


def test_whoever_was_given_the_same_task_may_use_it() -> None:
    """However often each of them was told of it."""
    routes = Routes()
    for identity in ("a", "b"):
        routes.learn(identity, "docs", {"taskId": "t"})
        routes.learn(identity, "docs", {"taskId": "t"})
    params = {"taskId": "t"}
    assert [owner(routes, "x/y", params, identity=each, seen=("docs",)) for each in "abc"] == ["docs", "docs", None]


def test_two_tasks_of_one_name_are_told_apart_only_by_naming_the_server() -> None:
    """Where both servers gave a client the same id, a guess could hit the wrong one."""
    routes = Routes()
    for server in ("docs", "git"):
        routes.learn("a", server, {"taskId": "1"})
    assert owner(routes, "tasks/get", {"taskId": "1"}) is None
    assert owner(routes, "tasks/get", {"taskId": "1"}, seen=("docs", "db")) == "docs"
    assert owner(routes, "tasks/get", {"taskId": "1", "_meta": {SERVER_KEY: "git"}}) == "git"


@pytest.mark.parametrize(
    "result", [{}, {"task": None}, {"task": "t"}, {"taskId": 5}, {"taskId": None}, {"task": {"taskId": {}}}]
)
def test_what_is_no_task_is_not_learned(result: Message) -> None:
    """Most results have nothing to do with tasks."""
    routes = Routes()
    routes.learn("a", "docs", result)
    assert len(routes._tasks) == 0


@pytest.mark.parametrize("task", [None, 5, [], {}, True])
def test_a_task_of_the_wrong_shape_leads_nowhere(task: Any) -> None:
    """It is no reason to raise anything but the usual refusal."""
    routes = Routes()
    routes.learn("a", "docs", {"taskId": "t"})
    assert owner(routes, "tasks/get", {"taskId": task}) is None


def test_of_too_many_tasks_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that was heard of again is young again."""
    monkeypatch.setattr(module, "_MAX_TASKS", 3)
    routes = Routes()
    for task in ("1", "2", "3", "1", "4", "5"):
        routes.learn("a", "docs", {"taskId": task})
    known = [task for task in "12345" if owner(routes, "tasks/get", {"taskId": task})]
    assert known == ["1", "4", "5"]
    assert len(routes._tasks) == len(routes._holders) == 3
    assert owner(routes, "x/y", {"taskId": "2"}, identity="b", seen=("docs",)) == "docs"


@settings(deadline=None)
@given(
    method=st.text() | st.sampled_from(["tasks/get", "notifications/", "/", "a/b/c"]),
    seen=st.lists(st.sampled_from(SEEN), unique=True),
    learned=st.lists(st.tuples(st.sampled_from(SEEN), st.sampled_from(["1", "2"]))),
    able=st.dictionaries(st.sampled_from(SEEN), st.dictionaries(st.sampled_from(["tasks", "a", ""]), st.just({}))),
    task=st.none() | st.sampled_from(["1", "2", "3"]) | st.integers(),
    named=st.none() | st.sampled_from(SEEN) | st.text(),
)
def test_whoever_is_found_is_in_sight(
    method: str,
    seen: list[str],
    learned: list[tuple[str, str]],
    able: dict[str, dict[str, Any]],
    task: object,
    named: object,
) -> None:
    """Whatever is asked for, a server that a client does not see is never reached; and a named one is never another."""
    routes = Routes()
    for server, number in learned:
        routes.learn("a", server, {"taskId": number})
    params = {"taskId": task, "_meta": {SERVER_KEY: named}}
    found = owner(routes, method, params, seen=tuple(seen), capabilities=able)
    assert found is None or found in seen
    if method in TASK_METHODS - {"tasks/list"}:
        # Whoever is named, or is the only one, is asked about this client's own tasks alone.
        asked = [fold_server_name(named)] if isinstance(named, str) else seen
        owners = {server for server in asked if server in seen and (server, task) in learned}
        assert found in owners or (found is None and len(owners) != 1)
    elif isinstance(named, str):
        assert found == (fold_server_name(named) if fold_server_name(named) in seen else None)
    elif len(seen) == 1:
        assert found == seen[0]
