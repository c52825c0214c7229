"""The task tools over the gateway, as an agent uses them, in both eras, beside the other toolsets."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from harness import ListeningTransport, RawClient, connect, http_client, open_gateway, stdio_client, toy, write_config
from pegboard.config import ServerSpec
from tasks.project import tasks_md, whole, write, write_tasks

pytestmark = pytest.mark.anyio

NAMES = [
    "registry_deps",
    "registry_init",
    "registry_list",
    "registry_next",
    "registry_sync",
    "registry_update",
    "spec_list",
    "spec_show",
    "spec_validate",
]
CHANGING = {"registry_deps", "registry_init", "registry_sync", "registry_update"}
VERSIONS = ("2025-11-25", "2026-07-28")
# Where a client is counts whoever it is.
OWN: dict[str, Any] = {"toolsets": ["tasks"], "auth": {"required": False}}


@asynccontextmanager
async def client_of(tmp_path: Path, version: str = "2025-11-25", **own: Any) -> AsyncGenerator[tuple[RawClient, Path]]:
    """A client of a gateway whose config names a project, and the project."""
    root = whole(tmp_path / "project")
    own = {**OWN, "workspace": "project", **own}
    async with open_gateway(tmp_path, {}, **own) as gateway, http_client(gateway.mcp, version) as client:
        yield client, root


async def data(client: RawClient, tool: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The data of an answer, which is the same as text and as structured content."""
    result = await client.call(tool, arguments or {})
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert result["isError"] is False, result
    return result["structuredContent"]["data"]


async def failure(client: RawClient, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The error of an answer."""
    result = await client.call(tool, arguments)
    assert result["isError"] is True, result
    return result["structuredContent"]["error"]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_day_of_work(tmp_path: Path, version: str) -> None:
    """Set up, look, take the next, complete it, see what that made possible."""
    async with client_of(tmp_path, version) as (client, root):
        write_tasks(root, add_users="- [ ] Table\n- [ ] Page <!-- depends: 1 -->\n")
        assert (await data(client, "registry_init"))["created"] is True
        again = await data(client, "registry_init")
        assert (again["created"], again["tasks"], again["changes"]) == (False, 4, 2)
        synced = await data(client, "registry_sync")
        assert {key: synced[key] for key in ("synced_changes", "added", "updated", "removed", "conflicts")} == {
            "synced_changes": 2,
            "added": 4,
            "updated": 0,
            "removed": 0,
            "conflicts": [],
        }
        listed = await data(client, "registry_list", {"status": "pending"})
        assert [task["id"] for task in listed["tasks"]] == ["add-login/2", "add-users/1", "add-users/2"]
        assert (listed["total"], listed["filtered"]) == (4, 3)
        assert listed["summary"]["by_status"] == {"pending": 3}
        assert listed["summary"]["by_priority"] == {"medium": 3}
        assert listed["summary"]["by_change"]["add-login"] == {
            "title": "Add a login",
            "status": "in_progress",
            "total": 2,
            "completed": 1,
            "filtered": 1,
        }
        found = await data(client, "registry_next", {"count": 3})
        assert found["recommended"]["id"] == "add-login/2"
        assert "add-login is at 1 of 2" in found["reason"]
        assert [task["id"] for task in found["alternatives"]] == ["add-users/1"]
        assert found["blocked_count"] == 1
        assert (await data(client, "registry_next", {"change_id": "add-users"}))["alternatives"] == []
        assert (await data(client, "registry_next", {"count": 1}))["alternatives"] == []
        await data(client, "registry_deps", {"task_id": "add-login/2", "operation": "add", "depends_on": "add-users/1"})
        done = await data(
            client, "registry_update", {"task_id": "add-users/1", "status": "completed", "notes": "quick"}
        )
        assert done["unblocked"] == ["add-login/2", "add-users/2"]
        assert (done["task"]["status"], done["task"]["notes"]) == ("completed", "quick")
        assert tasks_md(root, "add-users").read_text() == "- [x] Table\n- [ ] Page <!-- depends: 1 -->\n"
        deps = await data(client, "registry_deps", {"task_id": "add-login/2"})
        assert [(row["id"], row["from"], row["status"]) for row in deps["depends_on"]] == [
            ("add-login/1", "file", "completed"),
            ("add-users/1", "registry", "completed"),
        ]


async def test_over_stdio_from_where_it_stands(tmp_path: Path) -> None:
    """A process that was started in a project needs no path; what HTTP set is there."""
    async with client_of(tmp_path) as (client, root):
        await data(client, "registry_update", {"task_id": "add-login/2", "priority": "high"})
    config = write_config(tmp_path / "pegboard.json", {}, **OWN, workspace=str(root))
    async with stdio_client(config) as client:
        found = await data(client, "registry_next")
        assert (found["recommended"]["id"], found["recommended"]["priority"]) == ("add-login/2", "high")
        assert (await data(client, "spec_show", {"name": "auth"}))["kind"] == "spec"


async def test_a_path_names_another_project(tmp_path: Path) -> None:
    """Where the client names no roots, any folder that has an openspec."""
    async with client_of(tmp_path) as (client, _):
        other = write_tasks(tmp_path / "other", b="- [ ] elsewhere\n")
        listed = await data(client, "registry_list", {"path": str(other)})
        assert [task["id"] for task in listed["tasks"]] == ["b/1"]
        assert (await failure(client, "registry_list", {"path": str(tmp_path)}))["code"] == "TOOL_NOT_FOUND"


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_tools_are_there_unless_switched_off(tmp_path: Path, version: str) -> None:
    """Nine of them; in a list that is otherwise found, none takes any room."""
    async with client_of(tmp_path, version) as (client, _):
        assert await client.names() == NAMES
    async with client_of(tmp_path, version, expose="search") as (client, _):
        assert await client.names() == []
        assert (await data(client, "registry_next"))["recommended"]["id"] == "add-login/2"
    async with client_of(tmp_path, version, toolsets=[]) as (client, _):
        assert await client.names() == []


async def test_every_parameter_explains_itself(tmp_path: Path) -> None:
    """With a description and examples that fit it; hints say what a tool may do."""
    async with client_of(tmp_path) as (client, _):
        for tool in await client.tools():
            for name, schema in tool["inputSchema"]["properties"].items():
                assert schema["description"], (tool["name"], name)
                assert schema["examples"], (tool["name"], name)
                for example in schema["examples"]:
                    jsonschema_rs.validate(schema, example)
            assert "path" in tool["inputSchema"]["properties"]
            assert tool["inputSchema"]["additionalProperties"] is False
            assert tool["annotations"]["readOnlyHint"] is (tool["name"] not in CHANGING)
            assert tool["annotations"]["openWorldHint"] is False
            assert tool["annotations"]["destructiveHint"] is (tool["name"] in CHANGING - {"registry_init"})


async def test_the_beginning_is_told(tmp_path: Path) -> None:
    """A registry that is new, and one that is there already."""
    async with client_of(tmp_path) as (client, _):
        holds = "Tasks in the folder: 2, of changes: 1."
        first, second = [await data(client, "registry_init") for _ in range(2)]
        assert first["message"] == f"There is an empty registry now: registry_sync fills it. {holds}"
        assert second["message"] == f"There is a registry already. {holds}"


async def test_answers_fit_their_schemas(tmp_path: Path) -> None:
    """Good ones and bad, of every tool."""
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("registry_init", {}),
        ("registry_sync", {"dry_run": True}),
        ("registry_sync", {"force": True}),
        ("registry_list", {"unblocked": True, "limit": 1}),
        ("registry_list", {"change_id": "nope"}),
        ("registry_next", {}),
        ("registry_next", {"change_id": "add-login", "count": 2}),
        ("registry_update", {"task_id": "add-login/2", "status": "in_progress", "assignee": "ada"}),
        ("registry_update", {"task_id": "add-login/7", "status": "completed"}),
        ("registry_next", {}),
        ("registry_deps", {"task_id": "add-login/1", "operation": "list"}),
        ("registry_deps", {"task_id": "add-login/1", "operation": "add", "depends_on": ["2"]}),
        ("spec_list", {}),
        ("spec_show", {"name": "add-login", "file": "tasks.md"}),
        ("spec_show", {"name": "nope"}),
        ("spec_validate", {"strict": True}),
    )
    async with client_of(tmp_path) as (client, _):
        tools = {tool["name"]: tool for tool in await client.tools()}
        assert {name for name, _ in calls} == set(NAMES)
        for name, arguments in calls:
            answer = await client.call(name, arguments)
            jsonschema_rs.validate(tools[name]["outputSchema"], answer["structuredContent"])
            assert answer["structuredContent"]["success"] is not answer["isError"]
            if answer["isError"]:
                error = answer["structuredContent"]["error"]
                assert error["code"] in {"TOOL_NOT_FOUND", "TOOL_INVALID_INPUT"}, error
                assert error["retryable"] is False


async def test_what_the_schema_offers_the_tool_takes(tmp_path: Path) -> None:
    """Every word of every choice, so that none is offered under another name than it is taken."""
    async with client_of(tmp_path) as (client, root):
        write_tasks(root, a="- [ ] one\n- [ ] two\n")
        tools = {tool["name"]: tool["inputSchema"]["properties"] for tool in await client.tools()}
        for status in tools["registry_update"]["status"]["enum"]:
            done = await data(client, "registry_update", {"task_id": "a/1", "status": status})
            assert done["task"]["status"] == status
            assert len((await data(client, "registry_list", {"status": status, "change_id": "a"}))["tasks"]) >= 1
        for priority in tools["registry_update"]["priority"]["enum"]:
            await data(client, "registry_update", {"task_id": "a/1", "priority": priority})
            listed = await data(client, "registry_list", {"priority": priority})
            assert "a/1" in [row["id"] for row in listed["tasks"]]
        for operation in tools["registry_deps"]["operation"]["enum"]:
            more = {} if operation == "list" else {"depends_on": ["2"]}
            await data(client, "registry_deps", {"task_id": "a/1", "operation": operation, **more})


async def test_wrong_parameters_are_named(tmp_path: Path) -> None:
    """In the error form of every tool."""
    async with client_of(tmp_path) as (client, _):
        for tool, arguments, name in (
            ("registry_update", {"status": "completed"}, "task_id"),
            ("registry_update", {"task_id": "a/1", "status": "finished"}, "status"),
            ("registry_list", {"limit": 0}, "limit"),
            ("registry_list", {"colour": "red"}, "colour"),
            ("registry_next", {"count": 51}, "count"),
            ("registry_next", {"count": "many"}, "count"),
            ("registry_deps", {"task_id": "a/1", "operation": "show"}, "operation"),
            ("registry_sync", {"dry_run": "yes"}, "dry_run"),
            ("spec_show", {"name": ""}, "name"),
        ):
            error = await failure(client, tool, arguments)
            assert error["code"] == "TOOL_INVALID_INPUT"
            assert name in error["message"], error


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_client_elsewhere_stays_within_the_workspace(tmp_path: Path, version: str) -> None:
    """Neither a path nor a folder in its address leads anywhere else on this machine."""
    root, other = whole(tmp_path / "project"), whole(tmp_path / "other")
    async with open_gateway(tmp_path, {}, **OWN, workspace="project") as gateway:
        for address in (gateway.mcp, f"{gateway.mcp}?workspace={other}"):
            headers = {"X-Forwarded-For": "192.0.2.7"}
            spec = ServerSpec(name="gateway", given_name="gateway", transport="http", url=address, headers=headers)
            async with connect(ListeningTransport(spec), version) as client:
                refused = await failure(client, "registry_list", {"path": str(other)})
                assert refused["code"] == "TOOL_INVALID_INPUT"
                assert "outside of the workspace" in refused["message"]
                assert str(root) not in refused["message"]
                assert (await data(client, "registry_list", {"path": str(root)}))["total"] == 2
        async with http_client(f"{gateway.mcp}?workspace={other}", version) as client:
            assert (await data(client, "registry_list"))["total"] == 2


async def test_no_long_name_or_line_makes_an_answer_long(tmp_path: Path) -> None:
    """Conflicts, reasons, refusals and findings repeat what somebody wrote, but not all of it."""
    async with client_of(tmp_path) as (client, root):
        long, many = "long " * 50_000, ", ".join(map(str, range(1, 3_001)))
        done = "- [x] done\n" * 3_000
        chain = "- [ ] first\n" + "".join(f"- [ ] n <!-- depends: {n} -->\n" for n in range(1, 3_000))
        write_tasks(
            root, line=f"- [ ] {long}\n- [ ] b\n", wide=f"{done}- [ ] last <!-- depends: {many} -->\n", chain=chain
        )
        write_tasks(root, odd=f"- [ ] a <!-- depends: {'x' * 100_000} -->\n", crowd="- [ ] one of them\n" * 500)
        write(root, {f"changes/files/{number}.md": "x" for number in range(2_000)})
        write(root, {"specs/odd/spec.md": f"## Requirements\n### Requirement: {long}\n"})
        for number in range(1, 121):
            await data(client, "registry_update", {"task_id": f"crowd/{number}", "status": "completed"})
        await data(client, "registry_update", {"task_id": "line/1", "status": "completed"})
        write_tasks(root, line=f"- [ ] {long}\n- [ ] b\n", crowd="- [ ] one of them\n" * 500)
        for tool, arguments in (
            ("registry_update", {"task_id": "line/2", "status": "completed"}),
            ("registry_update", {"task_id": "crowd/500", "notes": "n" * 20_000}),
            ("registry_sync", {}),
            ("registry_next", {"change_id": "wide"}),
            ("registry_deps", {"task_id": "odd/1"}),
            ("registry_deps", {"task_id": "wide/3001", "operation": "remove", "depends_on": "9999"}),
            ("registry_deps", {"task_id": "chain/1", "operation": "add", "depends_on": "3000"}),
            ("spec_show", {"name": "files", "file": "nope"}),
            ("spec_validate", {"name": "odd"}),
        ):
            result = await client.call(tool, arguments)
            most = 5_000 if result["isError"] else 25_000
            assert len(result["content"][0]["text"]) <= most, (tool, arguments)
            if tool == "registry_next":
                assert "(wide/1, wide/2, " in result["structuredContent"]["data"]["reason"]
                assert result["structuredContent"]["data"]["reason"].endswith("wide/20, and 2980 more)")


async def test_answers_stay_small(tmp_path: Path) -> None:
    """25,000 characters however many tasks, changes and conflicts there are; page by page all are there."""
    async with client_of(tmp_path) as (client, root):
        tasks = "".join(f"- [ ] Task {n} " + "words " * 30 + "\n" for n in range(30))
        needs = ", ".join(f"change-{n:02}/{m}" for n in range(80) for m in range(40))
        write_tasks(root, long=f"- [ ] {'long ' * 20_000}<!-- depends: {needs} -->\n")
        for number in range(80):
            write_tasks(root, **{f"change_{number:02}": tasks})
        for tool, arguments in (
            ("registry_sync", {}),
            ("registry_list", {"limit": 500}),
            ("registry_next", {"count": 50}),
            ("spec_list", {"limit": 500}),
            ("registry_update", {"task_id": "change-00/1", "notes": "n" * 20_000}),
            ("registry_list", {"limit": 500}),
            ("registry_deps", {"task_id": "change-00/1"}),
            ("registry_update", {"task_id": "change-00/1", "notes": '"\\\x01\n' * 5_000}),
            ("registry_deps", {"task_id": "change-00/1"}),
            ("registry_deps", {"task_id": "long/1"}),
            ("registry_list", {"change_id": "long"}),
            ("registry_update", {"task_id": "long/1", "status": "in_progress"}),
        ):
            result = await client.call(tool, arguments)
            assert result["isError"] is False, (tool, result)
            assert len(result["content"][0]["text"]) <= 25_000, tool
        seen: list[str] = []
        while True:
            page = await data(client, "registry_list", {"limit": 500, "offset": len(seen)})
            seen += [task["id"] for task in page["tasks"]]
            if not page["hasMore"]:
                break
        assert len(set(seen)) == page["total"] == 80 * 30 + 3


async def test_old_names_lead_to_the_new_ones(tmp_path: Path) -> None:
    """A call by the name of a former release says what it is called now."""
    from pegboard.servers.errors import RpcError

    async with client_of(tmp_path) as (client, _):
        with pytest.raises(RpcError, match='it is called "registry_next" now') as failed:
            await client.call("go_ent_registry_next", {})
        assert "not installed" not in str(failed.value)


async def test_describing_an_old_name_says_the_new_one_and_where_to_search(tmp_path: Path) -> None:
    """Whoever has old names in mind may want others, too."""
    async with open_gateway(tmp_path, {}, toolsets=["discovery", "tasks"]) as gateway:
        async with http_client(gateway.mcp) as client:
            answer = await client.call("tool_describe", {"name": "go_ent_registry_next"})
    assert 'it is called "registry_next" now' in str(answer)
    assert "tool_find" in str(answer)


async def test_beside_the_other_toolsets_everyday_words_find_them(tmp_path: Path) -> None:
    """`tool_find` knows what an agent would ask for, among a server's tools and all of Pegboard's own."""
    root = whole(tmp_path / "project")
    own = {"toolsets": ["discovery", "memory", "tasks"], "expose": "search", "workspace": str(root)}
    async with open_gateway(tmp_path, {"one": toy(tools=[f"thing_{n}" for n in range(60)])}, **own) as gateway:
        await gateway.board.refresh()
        async with http_client(gateway.mcp) as client:
            for query, wanted in (
                ("what should I work on next", "registry_next"),
                ("show my todo list", "registry_list"),
                ("which tasks are still open", "registry_list"),
                ("mark a task as done", "registry_update"),
                ("tick off a todo", "registry_update"),
                ("assign a task to somebody", "registry_update"),
                ("what does this task depend on", "registry_deps"),
                ("refresh tasks from the files", "registry_sync"),
                ("set up task tracking for this project", "registry_init"),
                ("read the specification", "spec_show"),
                ("list all specs", "spec_list"),
                ("check the spec for mistakes", "spec_validate"),
            ):
                found = (await data(client, "tool_find", {"query": query}))["tools"]
                assert wanted in [hit["name"] for hit in found[:3]], (query, [hit["name"] for hit in found])
            loaded = await data(client, "tool_load", {"names": ["registry_next"]})
            assert loaded["loaded"] == ["registry_next"]
            assert "registry_next" in await client.names()
            assert (await data(client, "registry_next"))["recommended"]["id"] == "add-login/2"


@pytest.mark.parametrize("version", VERSIONS)
async def test_the_clients_roots_are_the_default_and_the_bounds(tmp_path: Path, version: str) -> None:
    """In both eras: without a path the workspace folder, with one only what is inside; nothing outside is changed."""
    root = whole(tmp_path / "project")
    other = write_tasks(tmp_path / "other", b="- [ ] elsewhere\n")
    roots = {"roots": [{"uri": root.as_uri(), "name": "project"}]}
    asked = {"capabilities": {"roots": {}}, "answers": {"roots/list": lambda _: roots}}
    async with open_gateway(tmp_path, {}, **OWN, workspace=str(other)) as gateway:
        async with http_client(gateway.mcp, version, **asked) as client:

            async def call(tool: str, **arguments: Any) -> dict[str, Any]:
                return (await client.call_through(tool, arguments))["structuredContent"]

            found = await call("registry_next")
            assert found["data"]["recommended"]["id"] == "add-login/2"
            assert (await call("registry_list", path=str(root)))["data"]["total"] == 2
            assert (await call("registry_list", path="."))["data"]["total"] == 2
            for path in (str(other), "../other", other.as_uri(), "/"):
                for tool, more in (
                    ("registry_list", {}),
                    ("registry_init", {}),
                    ("registry_update", {"task_id": "b/1", "status": "completed"}),
                    ("spec_show", {"name": "b"}),
                ):
                    refused = await call(tool, path=path, **more)
                    assert refused["error"]["code"] == "TOOL_INVALID_INPUT", (tool, path, refused)
                    assert "outside of the folders" in refused["error"]["message"]
            assert tasks_md(other, "b").read_text() == "- [ ] elsewhere\n"
            assert client.questions


async def test_a_client_that_does_not_tell_its_roots_gets_what_is_configured(tmp_path: Path) -> None:
    """It says that it has some, and fails to name them: no path of its own is trusted."""
    root = whole(tmp_path / "project")
    other = write_tasks(tmp_path / "other", b="- [ ] elsewhere\n")
    async with open_gateway(tmp_path, {}, **OWN, workspace=str(root)) as gateway:
        async with http_client(gateway.mcp, capabilities={"roots": {}}) as client:
            assert (await data(client, "registry_next"))["recommended"]["id"] == "add-login/2"
            error = await failure(client, "registry_list", {"path": str(other)})
            assert "did not say which folders" in error["message"]


async def test_a_folder_in_the_address_is_the_default_and_the_bound(tmp_path: Path) -> None:
    """`/mcp?workspace=…` names one, as a client's config may."""
    from urllib.parse import quote

    root = whole(tmp_path / "project")
    other = write_tasks(tmp_path / "other", b="- [ ] elsewhere\n")
    async with open_gateway(tmp_path, {}, **OWN) as gateway:
        async with http_client(f"{gateway.mcp}?workspace={quote(str(other))}") as client:
            assert (await data(client, "registry_next"))["recommended"]["id"] == "b/1"
            assert (await failure(client, "registry_list", {"path": str(root)}))["code"] == "TOOL_INVALID_INPUT"
