"""Tasks over REST: the same answers as the tools', with statuses that fit."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from harness import LIMIT, open_gateway
from pegboard.gateway.rest.openapi import document
from tasks.project import tasks_md, whole, write_tasks

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def rest(tmp_path: Path, **own: Any) -> AsyncGenerator[tuple[httpx2.AsyncClient, Path]]:
    """A gateway with the task toolset, a plain HTTP client, and the project."""
    root = whole(tmp_path / "project")
    settings = {"toolsets": ["tasks"], "workspace": str(root), "auth": {"required": False}, **own}
    async with (
        open_gateway(tmp_path, {}, **settings) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        yield http, root


async def test_every_route_does_what_its_tool_does(tmp_path: Path) -> None:
    """Listed, offered, synced, changed, drawn; each answer as the description says."""
    paths = document()["paths"]

    def fits(path: str, method: str, answer: httpx2.Response) -> dict[str, Any]:
        assert answer.status_code == 200, answer.text
        described = paths[path][method]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema_rs.validate(described, answer.json())
        return answer.json()["data"]

    async with rest(tmp_path) as (http, root):
        synced = fits("/api/tasks/sync", "post", await http.post("/api/tasks/sync", json={"dry_run": True}))
        assert (synced["added"], synced["dry_run"]) == (2, True)
        assert fits("/api/tasks/sync", "post", await http.post("/api/tasks/sync"))["added"] == 2
        listed = fits("/api/tasks", "get", await http.get("/api/tasks", params={"status": "pending", "limit": 5}))
        assert [task["id"] for task in listed["tasks"]] == ["add-login/2"]
        found = fits("/api/tasks/next", "get", await http.get("/api/tasks/next", params={"change_id": "add-login"}))
        assert found["recommended"]["id"] == "add-login/2"
        one = "/api/tasks/{change}/{number}"
        done = fits(one, "patch", await http.patch("/api/tasks/add-login/2", json={"status": "completed"}))
        assert done["task"]["status"] == "completed"
        assert "- [x] 1.2 Build" in tasks_md(root, "add-login").read_text()
        graph = fits("/api/tasks/graph", "get", await http.get("/api/tasks/graph", params={"change_id": "add-login"}))
        assert graph["graph"].startswith("flowchart LR")
        text = fits("/api/tasks/graph", "get", await http.get("/api/tasks/graph?format=text"))
        assert text["graph"].startswith("☑ add-login/1")


async def test_statuses_fit(tmp_path: Path) -> None:
    """Not found, wrong, in conflict: each has its own, and names what is wrong."""
    async with rest(tmp_path) as (http, root):
        for method, path, body, status, words in (
            ("GET", "/api/tasks?change_id=nope", None, 404, "nope"),
            ("GET", "/api/tasks?limit=0", None, 400, "limit"),
            ("GET", "/api/tasks?limit=many", None, 400, "limit"),
            ("GET", "/api/tasks?colour=red", None, 400, "colour"),
            ("GET", "/api/tasks?unblocked=maybe", None, 400, "unblocked"),
            ("GET", "/api/tasks?path=/nowhere", None, 404, "nowhere"),
            ("GET", "/api/tasks/next?count=x", None, 400, "count"),
            ("GET", "/api/tasks/graph?format=svg", None, 400, "format"),
            ("GET", "/api/tasks/graph?colour=red", None, 400, "colour"),
            ("GET", "/api/tasks/graph?format=text&format=rows", None, 400, "format is given 2 times"),
            ("GET", "/api/tasks/graph?change_id=", None, 400, "change_id"),
            ("GET", "/api/tasks?path=file://[", None, 400, "no address"),
            ("PATCH", "/api/tasks/add-login/9", {"status": "completed"}, 404, "add-login has 2"),
            ("PATCH", "/api/tasks/add-login/x", {"status": "completed"}, 400, "change-id/number"),
            (
                "PATCH",
                "/api/tasks/add-login/1.9",
                {"status": "completed"},
                404,
                "no task of add-login has the number 1.9",
            ),
            ("PATCH", "/api/tasks/add-login/2", {}, 400, "nothing to change"),
            ("PATCH", "/api/tasks/add-login/2", {"status": "done"}, 400, "status"),
            ("PATCH", "/api/tasks/add-login/2", {"task_id": "add-login/1", "status": "pending"}, 400, "task_id"),
            ("POST", "/api/tasks/sync", {"dry_run": 1}, 400, "dry_run"),
        ):
            answer = await http.request(method, path, json=body)
            assert answer.status_code == status, (path, answer.text)
            assert words in answer.json()["error"]["message"], answer.text
        by_number = await http.patch("/api/tasks/add-login/1.2", json={"priority": "high"})
        assert by_number.json()["data"]["task"]["id"] == "add-login/2"
        await http.post("/api/tasks/sync")
        write_tasks(root, add_login="- [ ] Something else altogether\n- [x] 1.1 Plan\n")
        assert (await http.patch("/api/tasks/add-login/1", json={"status": "completed"})).status_code == 409
        assert (await http.delete("/api/tasks/add-login/1")).status_code == 405


async def test_any_change_has_an_address(tmp_path: Path) -> None:
    """Spaces, percent signs and other scripts, encoded."""
    from urllib.parse import quote

    async with rest(tmp_path) as (http, root):
        for change in ("with space", "50%", "日本", "next", "a?b#c"):
            file = tasks_md(root, change)
            file.parent.mkdir()
            file.write_text("- [ ] one\n")
            answer = await http.patch(f"/api/tasks/{quote(change, safe='')}/1", json={"status": "completed"})
            assert answer.json()["data"]["task"]["id"] == f"{change}/1"
            assert file.read_text() == "- [x] one\n"


async def test_a_switched_off_toolset_says_so(tmp_path: Path) -> None:
    """501, and no file is touched."""
    async with rest(tmp_path, toolsets=[]) as (http, root):
        before = tasks_md(root, "add-login").read_bytes()
        for method, path in (("GET", "/api/tasks"), ("GET", "/api/tasks/graph"), ("PATCH", "/api/tasks/add-login/2")):
            answer = await http.request(method, path, json={"status": "completed"} if method == "PATCH" else None)
            assert (answer.status_code, answer.json()["error"]["code"]) == (501, "TOOL_NOT_IMPLEMENTED")
        assert tasks_md(root, "add-login").read_bytes() == before


async def test_the_picture_is_denied_with_the_list(tmp_path: Path) -> None:
    """It shows what the list shows, so `tools.deny` holds for it as well."""
    async with rest(tmp_path, tools={"deny": ["registry_list"]}) as (http, _):
        for path in ("/api/tasks", "/api/tasks/graph"):
            answer = await http.get(path)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "TOOL_UNAVAILABLE")
            assert "tools.deny" in answer.json()["error"]["message"]


async def test_whoever_is_elsewhere_stays_within_the_workspace(tmp_path: Path) -> None:
    """Over every route, the call of a tool included; on this machine any folder may be named."""
    async with rest(tmp_path) as (http, root):
        other = whole(tmp_path / "other")
        before = tasks_md(other, "add-login").read_bytes()
        query = {"path": str(other)}
        for method, path, body in (
            ("GET", "/api/tasks", None),
            ("GET", "/api/tasks/next", None),
            ("GET", "/api/tasks/graph", None),
            ("POST", "/api/tasks/sync", {}),
            ("PATCH", "/api/tasks/add-login/2", {"status": "completed"}),
            ("POST", "/api/tools/spec_list/call", {"arguments": query}),
        ):
            params = None if "tools" in path else query
            elsewhere = {"X-Forwarded-For": "192.0.2.7"}
            refused = await http.request(method, path, params=params, json=body, headers=elsewhere)
            assert "outside of the workspace" in refused.text, (path, refused.text)
            assert str(root) not in refused.text
        assert tasks_md(other, "add-login").read_bytes() == before
        assert (await http.get("/api/tasks", headers=elsewhere)).json()["data"]["total"] == 2
        assert (await http.get("/api/tasks", params=query)).json()["data"]["total"] == 2


async def test_whoever_is_elsewhere_learns_no_place_on_this_machine(tmp_path: Path) -> None:
    """Every tool and route, good answers and refusals: none holds a path that the client did not give."""
    async with rest(tmp_path) as (http, root):
        write_tasks(root, big="x" * 2_000_001, locked="- [ ] one\n")
        tasks_md(root, "locked").chmod(0o444)
        (root / "openspec" / "specs" / "out").symlink_to(tmp_path)
        (root / "openspec" / "changes" / "add-login" / "away.md").symlink_to(tmp_path / "pegboard.json")
        calls: list[tuple[str, dict[str, Any]]] = [
            ("registry_init", {}),
            ("registry_sync", {"force": True}),
            ("registry_list", {}),
            ("registry_next", {"count": 5}),
            ("registry_update", {"task_id": "locked/1", "status": "completed"}),
            ("registry_update", {"task_id": "big/1", "status": "completed"}),
            ("registry_update", {"task_id": "add-login/2", "status": "completed"}),
            ("registry_deps", {"task_id": "add-login/2"}),
            ("spec_list", {}),
            ("spec_show", {"name": "add-login"}),
            ("spec_show", {"name": "add-login", "file": "away.md"}),
            ("spec_show", {"name": "out"}),
            ("spec_show", {"name": "big", "file": "tasks.md"}),
            ("spec_validate", {}),
            *(
                (name, {"path": path})
                for name in ("registry_list", "spec_validate")
                for path in ("nope", "..", "~", "x\0")
            ),
        ]
        elsewhere = {"X-Forwarded-For": "192.0.2.7"}
        for name, arguments in calls:
            answer = await http.post(f"/api/tools/{name}/call", json={"arguments": arguments}, headers=elsewhere)
            assert str(tmp_path) not in answer.text, (name, arguments, answer.text)
            assert str(Path.home()) + "/" not in answer.text
        for path in ("", "/next", "/graph", "?path=nope", "?path=..", "/graph?path=~"):
            answer = await http.get(f"/api/tasks{path}", headers=elsewhere)
            assert str(tmp_path) not in answer.text, (path, answer.text)


async def test_rest_and_mcp_answer_alike(tmp_path: Path) -> None:
    """One implementation behind both."""
    async with rest(tmp_path) as (http, _):
        for path, tool, arguments in (
            ("/api/tasks?unblocked=true", "registry_list", {"unblocked": True}),
            ("/api/tasks/next?count=3", "registry_next", {"count": 3}),
        ):
            over_rest = (await http.get(path)).json()
            called = await http.post(f"/api/tools/{tool}/call", json={"arguments": arguments})
            assert called.json()["data"]["structuredContent"] == over_rest


async def test_changes_tell_which_others_they_need(tmp_path: Path) -> None:
    """Layers from what needs nothing on; what is not there, what cannot be read and circles are told as such; a need
    that is met is still a need, but nobody waits for it."""
    async with rest(tmp_path) as (http, root):
        write_tasks(
            root,
            first="- [x] one\n- [ ] two\n",
            second="- [ ] one <!-- depends: first/1 -->\n",
            third="- [ ] one <!-- depends: second/1, gone/1 -->\n",
            left="- [ ] one <!-- depends: right/1 -->\n- [ ] two\n",
            right="- [ ] one\n- [ ] two <!-- depends: left/2 -->\n",
            big="x" * 2_000_001,
        )
        answer = await http.get("/api/tasks/changes")
        described = document()["paths"]["/api/tasks/changes"]["get"]["responses"]["200"]
        jsonschema_rs.validate(described["content"]["application/json"]["schema"], answer.json())
        data = answer.json()["data"]
        found = {row["id"]: row for row in data["changes"]}
        assert {name: row["layer"] for name, row in found.items() if row["needs"]} == {
            "second": 1,
            "third": 2,
            "left": 0,
            "right": 0,
        }
        assert (found["second"]["needs"], found["second"]["waits_for"]) == (["first"], [])
        assert found["third"]["waits_for"] == ["gone", "second"]
        assert [name for name, row in found.items() if row["in_cycle"]] == ["left", "right"]
        assert (found["gone"]["status"], found["big"]["status"]) == ("missing", "unreadable")
        assert "2,000,000" in found["big"]["problem"]
        assert (found["first"]["tasks"], found["first"]["completed"]) == (2, 1)
        assert found["add-login"]["title"] == "Add a login"
        held = {row["id"]: row["why_blocked"] for row in data["held_up"]}
        assert held.keys() == {"third/1", "left/1", "right/2"}
        assert "gone/1 does not exist" in held["third/1"]
        elsewhere = {"X-Forwarded-For": "192.0.2.7"}
        refused = await http.get("/api/tasks/changes", params={"path": str(tmp_path)}, headers=elsewhere)
        assert "outside of the workspace" in refused.text
        assert (await http.get("/api/tasks/changes?colour=red")).status_code == 400
        nowhere = (await http.get("/api/tasks/changes", params={"path": str(tmp_path / "nowhere")})).json()["data"]
        assert (nowhere["changes"], "`openspec init` makes one" in nowhere["message"]) == ([], True)


async def test_a_task_tells_who_waits_for_it(tmp_path: Path) -> None:
    """In full, with what it depends on, and without a call that the events would tell of."""
    async with rest(tmp_path) as (http, _):
        answer = await http.get("/api/tasks/add-login/1")
        described = document()["paths"]["/api/tasks/{change}/{number}"]["get"]["responses"]["200"]
        jsonschema_rs.validate(described["content"]["application/json"]["schema"], answer.json())
        assert answer.json()["data"]["dependants"] == ["add-login/2"]
        needs = (await http.get("/api/tasks/add-login/1.2")).json()["data"]["depends_on"]
        assert [(row["id"], row["from"], row["status"]) for row in needs] == [("add-login/1", "file", "completed")]
        assert (await http.get("/api/tasks/add-login/9")).status_code == 404
        assert (await http.get("/api/tasks/add-login/x")).status_code == 400
        assert [each["kind"] for each in (await http.get("/api/calls")).json()["data"]["records"]] == []
    async with rest(tmp_path / "denied", tools={"deny": ["registry_list"]}) as (http, _):
        for path in ("/api/tasks/changes", "/api/tasks/add-login/1"):
            assert (await http.get(path)).status_code == 403


@pytest.mark.parametrize(
    "folder", ["//there/share", "\\\\there\\share", "\\\\?\\C:\\x", "\\??\\C:\\x", "file:////there/share"]
)
async def test_a_folder_of_another_machine_is_not_looked_into(tmp_path: Path, folder: str) -> None:
    """An address that somebody follows would make Windows sign in there."""
    async with rest(tmp_path) as (http, _):
        for path in ("/api/tasks", "/api/tasks/graph", "/api/tasks/changes"):
            answer = await http.get(path, params={"path": folder})
            assert answer.status_code == 400, path
            assert "it must be a folder of this machine" in answer.json()["error"]["message"]
