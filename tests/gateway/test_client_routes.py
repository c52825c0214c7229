"""REST routes of client programs: the same work as `pegboard install`, for whoever is at this machine."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import jsonschema_rs
import pytest

from harness import LIMIT, Gateway, open_gateway, toy
from pegboard.gateway.rest.openapi import document

pytestmark = pytest.mark.anyio
CONTENT = '{\n  "mcpServers": {\n    "a": {"command": "x", "env": {"API_KEY": "hunter2-s3cr3t"}}\n  }\n}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Cursor's file, with a server in it."""
    file = tmp_path / "home" / ".cursor" / "mcp.json"
    file.parent.mkdir(parents=True)
    file.write_text(CONTENT)
    return file


@asynccontextmanager
async def rest(tmp_path: Path) -> AsyncGenerator[tuple[httpx2.AsyncClient, Gateway]]:
    async with (
        open_gateway(tmp_path, {"one": toy()}) as gateway,
        httpx2.AsyncClient(base_url=gateway.url, timeout=LIMIT) as http,
    ):
        yield http, gateway


async def post(http: httpx2.AsyncClient, path: str, **body: Any) -> Any:
    answer = await http.post(f"/api/clients/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


async def refusal(http: httpx2.AsyncClient, path: str, **body: Any) -> tuple[int, str]:
    answer = await http.post(f"/api/clients/{path}", json=body)
    assert answer.json()["success"] is False
    return answer.status_code, answer.json()["error"]["message"]


async def test_from_a_preview_to_an_install_and_back(tmp_path: Path, file: Path) -> None:
    """The preview writes nothing, the install writes what it showed, the uninstall brings the file back."""
    async with rest(tmp_path) as (http, gateway):
        rows = (await http.get("/api/clients")).json()["data"]["clients"]
        row = next(row for row in rows if row["id"] == "cursor")
        assert (row["found"], row["connected"], row["servers"]) == (True, False, 1)
        preview = await post(http, "cursor/preview")
        assert file.read_text() == CONTENT
        assert preview["entry"] == {"url": f"{gateway.url}/mcp/cursor"}
        assert json.loads(preview["snippet"]) == {"mcpServers": {"pegboard": preview["entry"]}}
        assert preview["link"].startswith("cursor://")
        assert "hunter2" not in json.dumps(preview)
        written = await post(http, "cursor/install", digest=preview["digest"])
        assert (written["outcome"], written["check"]["problem"]) == ("add", None)
        assert json.loads(file.read_text())["mcpServers"]["pegboard"] == preview["entry"]
        assert (await post(http, "cursor/install"))["outcome"] == "none"
        removed = await post(http, "cursor/uninstall")
        assert (removed["outcome"], removed["exact"]) == ("remove", True)
        assert file.read_text() == CONTENT
        assert (await post(http, "cursor/uninstall"))["outcome"] == "none"


@pytest.mark.parametrize("headers", [{"Host": "localhost:1"}, {"Host": "127.0.0.1"}, {"Host": "[::1]:80"}])
async def test_the_entry_has_the_address_that_the_gateway_listens_on(
    tmp_path: Path, file: Path, headers: dict[str, str]
) -> None:
    """Whatever a request calls it: through a tunnel it is another one."""
    async with rest(tmp_path) as (http, gateway):
        http.headers.update(headers)
        assert (await post(http, "cursor/preview"))["entry"] == {"url": f"{gateway.url}/mcp/cursor"}


async def test_a_file_that_changed_since_the_preview_is_a_conflict(tmp_path: Path, file: Path) -> None:
    """What a person agreed to is what is done."""
    async with rest(tmp_path) as (http, _):
        preview = await post(http, "cursor/preview")
        file.write_text("{}")
        assert await refusal(http, "cursor/install", digest=preview["digest"]) == (
            409,
            "the file has changed since the preview; nothing was written",
        )
        assert file.read_text() == "{}"


async def test_an_install_tells_where_the_old_file_is(tmp_path: Path, file: Path) -> None:
    """What it held before, for whoever wants it back; of a new file there is nothing."""
    async with rest(tmp_path) as (http, _):
        written = await post(http, "cursor/install")
        assert Path(written["backup"]).read_text() == CONTENT
        assert Path(written["backup"]).stat().st_mode & 0o777 == 0o600
        assert (await post(http, "windsurf/install"))["backup"] is None


async def test_an_uninstall_is_previewed(tmp_path: Path, file: Path) -> None:
    """Nothing is written, no value but ours is shown, and of a file that has changed since nothing is taken out."""
    async with rest(tmp_path) as (http, gateway):
        await post(http, "cursor/install")
        installed = file.read_text()
        preview = await post(http, "cursor/uninstall", preview=True)
        assert (preview["outcome"], preview["exact"]) == ("remove", True)
        assert f"{gateway.url}/mcp/cursor" in preview["diff"]
        assert "hunter2" not in json.dumps(preview)
        assert file.read_text() == installed
        file.write_text(changed := installed.replace('"command": "x"', '"command": "y"'))
        status, message = await refusal(http, "cursor/uninstall", digest=preview["digest"])
        assert (status, message) == (409, "the file has changed since the preview; nothing was written")
        assert file.read_text() == changed
        again = await post(http, "cursor/uninstall", preview=True)
        await post(http, "cursor/uninstall", digest=again["digest"])
    assert file.read_text() == CONTENT.replace('"command": "x"', '"command": "y"')


async def test_an_entry_of_somebody_else_is_a_conflict(tmp_path: Path, file: Path) -> None:
    """Unless it is forced."""
    async with rest(tmp_path) as (http, _):
        file.write_text('{"mcpServers": {"pegboard": {"command": "other"}}}')
        status, message = await refusal(http, "cursor/install")
        assert (status, "`force` overwrites it" in message) == (409, True)
        assert (await post(http, "cursor/install", force=True))["outcome"] == "update"


async def test_choices_are_those_of_the_command(tmp_path: Path, file: Path) -> None:
    """Board, transport, name and scope."""
    project = tmp_path / "project"
    project.mkdir()
    async with rest(tmp_path) as (http, _):
        made = await post(http, "cursor/preview", board="b", transport="stdio", name="n")
        assert made["entry"]["args"][:3] == ["stdio", "--board", "b"]
        assert made["name"] == "n"
        await post(http, "cursor/install", scope="project", project=str(project))
        assert "pegboard" in (project / ".cursor" / "mcp.json").read_text()
        await post(http, "cursor/uninstall", scope="project", project=str(project))
        assert list(project.iterdir()) == []
        assert file.read_text() == CONTENT
        pasted = await post(http, "goose/preview")
        assert (pasted["outcome"], pasted["file"]) == ("paste", None)


async def test_only_servers_that_work_are_taken_out(tmp_path: Path, file: Path) -> None:
    """By what the gateway knows of them: one that is disabled stays in the client."""
    async with rest(tmp_path) as (http, _):
        file.write_text(json.dumps({"mcpServers": {"dup": toy()}}))
        await http.post("/api/servers/one/refresh")
        assert (await post(http, "cursor/preview", replace=True))["replaces"] == ["dup"]
        await http.post("/api/servers/one/disable")
        preview = await post(http, "cursor/preview", replace=True)
        assert (preview["replaces"], preview["kept"]) == ([], [{"name": "dup", "reason": "disabled"}])


WRONG: list[tuple[str, dict[str, Any], int, str]] = [
    ("curser/preview", {}, 404, "did you mean cursor"),
    ("cursor/install", {"scop": "user"}, 400, "'scop' is no choice here: did you mean scope?"),
    ("cursor/install", {"scope": "world"}, 400, "scope must be user or project"),
    ("cursor/install", {"scope": "project"}, 400, "project: the scope `project` needs the folder"),
    ("cursor/install", {"scope": "project", "project": "here"}, 400, "project: it must be an absolute path"),
    ("cursor/preview", {"scope": "project", "project": "//there/share"}, 400, "project: it must be a folder of this"),
    ("cursor/install", {"force": "yes"}, 400, "force must be true or false"),
    ("cursor/install", {"board": "a/b"}, 400, "board takes letters, digits"),
    ("cursor/install", {"digest": 5}, 400, "digest must be a text"),
    ("cursor/uninstall", {"name": "x"}, 400, "'name' is no choice here"),
    ("claude-desktop/install", {"transport": "http"}, 400, "Claude Desktop starts a command"),
    ("goose/install", {}, 400, "Pegboard does not write the config of Goose"),
    ("amp/uninstall", {}, 400, "Pegboard is never installed to Amp"),
]


@pytest.mark.parametrize(("path", "body", "status", "message"), WRONG, ids=[f"{row[0]} {row[1]}" for row in WRONG])
async def test_a_wrong_request_changes_nothing(
    tmp_path: Path, file: Path, path: str, body: dict[str, Any], status: int, message: str
) -> None:
    """It is named what is wrong."""
    async with rest(tmp_path) as (http, _):
        found, said = await refusal(http, path, **body)
    assert (found, message in said) == (status, True), said
    assert file.read_text() == CONTENT


async def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path, file: Path) -> None:
    """With the place in it; nothing is touched."""
    async with rest(tmp_path) as (http, _):
        file.write_text("{")
        for action in ("preview", "install", "uninstall"):
            status, message = await refusal(http, f"cursor/{action}")
            assert (status, "it cannot be read: 1:2" in message) == (502, True)
    assert file.read_text() == "{"


async def test_other_machines_are_refused(tmp_path: Path, file: Path) -> None:
    """A proxy says where a request comes from: the files of this machine are not for it."""
    async with rest(tmp_path) as (http, gateway):
        http.headers |= {"x-forwarded-for": "203.0.113.7", **await gateway.token("boss", admin=True)}
        assert (await http.get("/api/clients")).status_code == 403
        for action in ("preview", "install", "uninstall"):
            assert (await refusal(http, f"cursor/{action}"))[0] == 403
    assert file.read_text() == CONTENT


async def test_answers_are_as_described(tmp_path: Path, file: Path) -> None:
    """The OpenAPI document has the four routes, and their answers fit it."""
    paths = document()["paths"]
    async with rest(tmp_path) as (http, _):
        answers = {
            ("/api/clients", "get"): (await http.get("/api/clients")).json(),
            ("/api/clients/{id}/preview", "post"): (await http.post("/api/clients/cursor/preview")).json(),
            ("/api/clients/{id}/install", "post"): (await http.post("/api/clients/cursor/install")).json(),
            ("/api/clients/{id}/uninstall", "post"): (await http.post("/api/clients/cursor/uninstall")).json(),
        }
    for (path, method), answer in answers.items():
        schema = paths[path][method]["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema_rs.validate(schema, answer)
