"""Install then uninstall is the identity on bytes, whatever a file looks like; and nothing but our entry changes."""

from __future__ import annotations

import json
import shutil
import tempfile
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from client_configs.places import context_of, with_working_servers
from pegboard.client_configs.context import InstallContext, InstallOptions
from pegboard.client_configs.document import ClientFileError, ServerDocument
from pegboard.client_configs.install import InstallPlan, apply_install, plan_install
from pegboard.client_configs.program import ClientProgram
from pegboard.client_configs.table import CLIENTS, find_client
from pegboard.client_configs.uninstall import UninstallPlan, apply_uninstall, plan_uninstall
from pegboard.config import jsonc

BOM = b"\xef\xbb\xbf"
NAMES = st.sampled_from(["a", "time", "GitHub-Docs", "ü", "with space", "x.y", ""])
ENTRIES = st.fixed_dictionaries(
    {"command": st.sampled_from(["uvx", "npx"]), "args": st.lists(st.text('ab"\\é ', max_size=3), max_size=3)}
)
SERVERS = st.dictionaries(NAMES, ENTRIES, max_size=3)
OTHERS = st.dictionaries(
    st.sampled_from(["theme", "projects", "z", "other"]),
    st.sampled_from([1, None, "text", [], {}, [1, {"a": 2}], {"deep": {"er": True}}]),
    max_size=3,
)


@dataclass
class Machine:
    """A machine with one client, whose file is the only one there."""

    client: ClientProgram
    context: InstallContext

    @property
    def file(self) -> Path:
        """The client's file, there or not."""
        found = self.client.target(self.context.place)
        assert found is not None
        return found.path

    def write(self, content: bytes) -> None:
        """What the file holds before anything is done."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(content)

    def install(self, **options: Any) -> InstallPlan:
        """Plan and do it."""
        plan = plan_install(self.client, self.context, InstallOptions(**options))
        apply_install(plan, self.context)
        return plan

    def uninstall(self) -> UninstallPlan:
        """Plan and do it."""
        plan = plan_uninstall(self.client, self.context)
        apply_uninstall(plan, self.context)
        return plan


@contextmanager
def machine(content: bytes | None = None, client: str = "cursor") -> Generator[Machine]:
    folder = Path(tempfile.mkdtemp(prefix="pegboard-clients-"))
    try:
        made = Machine(find_client(client), context_of(folder))
        if content is not None:
            made.write(content)
        yield made
    finally:
        shutil.rmtree(folder)


@st.composite
def json_texts(draw: st.DrawFn, key: str) -> str:
    """A JSON file in many layouts: indentation, one line, blanks, with the key or without."""
    document: dict[str, Any] = draw(OTHERS)
    kind = draw(st.sampled_from(["missing", "empty", "null", "full", "full"]))
    if kind != "missing":
        document[key] = {"empty": {}, "null": None, "full": draw(SERVERS)}[kind]
    indent = draw(st.sampled_from([None, 0, 1, 2, 3, 4, "\t"]))
    separators = draw(st.sampled_from([None, (",", ":"), (" , ", " : ")])) if indent is None else None
    text = json.dumps(document, indent=indent, ensure_ascii=draw(st.booleans()), separators=separators)
    if draw(st.booleans()) and indent is None:
        text = text.replace("{", "{ ").replace("}", " }")
    return text


@st.composite
def decorate(draw: st.DrawFn, text: str) -> str:
    """Comments and trailing commas, where JSON with comments has them."""
    lines = text.split("\n")
    for at in range(len(lines)):
        note = draw(st.sampled_from(["", "", "", " // a note", " /* two */", "  ", "\t"]))
        lines[at] += note
    text = "\n".join(lines)
    if draw(st.booleans()):
        text = f"// head {{\n{text}\n/* tail\n */"
    return text


@st.composite
def bytes_of(draw: st.DrawFn, text: str) -> bytes:
    """With or without a BOM, a final line end, and line ends of Windows."""
    text = text.rstrip("\n") + draw(st.sampled_from(["", "\n", "\n\n", " \n"]))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return (BOM if draw(st.booleans()) else b"") + text.encode()


JSONC = json_texts("mcpServers").flatmap(decorate).flatmap(bytes_of)
STRICT = json_texts("mcpServers").flatmap(bytes_of)


def round_trip(client: str, content: bytes | None, **options: Any) -> tuple[bytes, bytes | None]:
    """What the file holds after an install, and after the uninstall."""
    with machine(content, client) as one:
        assert one.install(**options).is_change
        between = one.file.read_bytes()
        assert one.install(**options).outcome == "none"
        assert one.uninstall().names == ("pegboard",)
        assert not list(one.file.parent.glob(".*.draft"))
        return between, one.file.read_bytes() if one.file.exists() else None


@pytest.mark.scenario("first hour: Install then uninstall is the identity")
@given(JSONC)
@settings(max_examples=300)
@example(b"")
@example(b" \r\n")
@example(b"{}")
@example(b'{ "mcpServers": {} }')
@example(b'{"mcpServers": null}')
@example(b'{"a": 1, "mcpServers": {"x": {"command": "y"},},}')
def test_install_then_uninstall_is_the_identity_on_json_with_comments(content: bytes) -> None:
    """Cursor's file, byte for byte; in between, only our entry is new."""
    between, after = round_trip("cursor", content)
    assert after == content
    old = ServerDocument(content.decode(), "jsonc", ("mcpServers",))
    new = ServerDocument(between.decode(), "jsonc", ("mcpServers",))
    assert new.rest(["pegboard"]) == old.rest(["pegboard"])
    assert list(new.servers()) == [*old.servers(), "pegboard"]


@given(STRICT)
@settings(max_examples=100)
def test_a_client_that_reads_strict_json_gets_strict_json(content: bytes) -> None:
    """Claude Desktop's file stays one that `json` reads."""
    between, after = round_trip("claude-desktop", content)
    assert after == content
    json.loads(between.decode("utf-8-sig"))


TOML_PARTS = st.lists(
    st.sampled_from(
        [
            'model = "o5"',
            "# a note",
            "",
            "   ",
            '[tools]\nweb = true # "x"',
            '[mcp_servers.time]\ncommand = "uvx"\nargs = ["mcp-server-time"]',
            '[mcp_servers."dotted.name".env]\nK = "V"',
            '[[profiles]]\nname = "a"\n[[profiles]]\nname = "b"',
            'text = """\n[mcp_servers.pegboard]\nno table\n"""',
            "list = [\n  1,\n  2,\n]",
            "at = 2026-11-17T10:00:00Z\nnot_a_number = nan",
            "[mcp_servers]",
            "# about the next one\n[last]\nx = 1",
        ]
    ),
    unique=True,
    max_size=6,
).map("\n".join)


def is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except ValueError:
        return False
    return True


@pytest.mark.scenario("first hour: Install then uninstall is the identity")
@given(TOML_PARTS.filter(is_toml).flatmap(bytes_of))
@settings(max_examples=300)
@example(b"")
@example(b"\r\n")
def test_install_then_uninstall_is_the_identity_on_toml(content: bytes) -> None:
    """Codex's file, byte for byte; in between, everything before our table is as it was."""
    between, after = round_trip("codex", content)
    assert after == content
    assert between.startswith(content)
    data = tomllib.loads(between.decode("utf-8-sig"))
    assert data["mcp_servers"]["pegboard"] == {"url": "http://127.0.0.1:7420/mcp/codex"}


INSTALLABLE = [client for client in CLIENTS if client.user and any(spec.is_written for spec in client.user)]
WAYS = [
    (client.id, kind)
    for client in INSTALLABLE
    for kind in ("http", "stdio")
    if not client.import_only and (kind == "stdio" or client.style.takes_http)
]


@pytest.mark.scenario("first hour: What an install took out or made is undone")
@pytest.mark.parametrize(("client", "kind"), WAYS)
def test_a_file_that_install_made_is_gone_after_uninstall(client: str, kind: str) -> None:
    """With the folders that were made for it."""
    with machine(client=client) as one:
        one.install(kind=kind)
        assert one.file.exists()
        one.uninstall()
        assert not one.context.place.home.exists()


@pytest.mark.scenario("first hour: What an install took out or made is undone")
@pytest.mark.parametrize(
    ("others", "left"),
    [
        ({"$schema": "https://opencode.ai/config.json"}, None),
        ({"$schema": "x", "theme": "dark"}, {"$schema": "x", "theme": "dark"}),
        ({"theme": "dark"}, {"theme": "dark"}),
    ],
)
def test_of_a_file_that_install_made_only_what_others_wrote_stays(others: dict[str, Any], left: object) -> None:
    """OpenCode writes it anew with its schema: that alone keeps no file, and no empty object of ours stays."""
    with machine(client="opencode") as one:
        one.install()
        one.file.write_text(json.dumps({**others, **json.loads(one.file.read_text())}, indent=4))
        one.uninstall()
        assert (json.loads(one.file.read_text()) if one.file.exists() else None) == left
        assert one.context.place.home.exists() == (left is not None)


@pytest.mark.parametrize("where", ["top", "entry", "end"])
@pytest.mark.parametrize(("client", "sign"), [("vscode", "//"), ("codex", "#")])
def test_comments_that_others_wrote_into_a_file_that_install_made_stay(client: str, sign: str, where: str) -> None:
    """Above everything, above our entry or at the end: what a person wrote is not thrown away with our entry."""
    with machine(client=client) as one:
        one.install()
        lines = one.file.read_text("utf-8").splitlines()
        at = {"top": 0, "end": len(lines), "entry": next(i for i, line in enumerate(lines) if "pegboard" in line)}
        lines.insert(at[where], f"{sign} mine: keep")
        one.file.write_text("\n".join([*lines, ""]), "utf-8")
        one.uninstall()
        left = one.file.read_text("utf-8")
        assert f"{sign} mine: keep" in left
        assert "command" not in left
        assert plan_uninstall(one.client, one.context).change is None


def test_servers_that_others_wrote_into_a_file_that_install_made_stay() -> None:
    """With the object around them."""
    with machine(client="opencode") as one:
        one.install()
        data = json.loads(one.file.read_text())
        data["mcp"]["other"] = {"type": "local", "command": ["x"]}
        one.file.write_text(json.dumps(data))
        one.uninstall()
        assert json.loads(one.file.read_text()) == {"mcp": {"other": {"type": "local", "command": ["x"]}}}


@given(JSONC, st.booleans())
@settings(max_examples=100)
def test_the_outcome_is_the_same_after_installs_in_a_row(content: bytes, replaces: bool) -> None:
    """HTTP, then a command, then another board: the last one alone is there, and uninstall undoes all of them."""
    with machine(content) as one:
        one.install()
        one.install(kind="stdio", replace=replaces)
        one.install(board="b")
        once, _ = round_trip("cursor", content, board="b")
        assert one.file.read_bytes() == once
        one.uninstall()
        assert one.file.read_bytes() == content


@pytest.mark.scenario("first hour: Install then uninstall is the identity")
@given(JSONC)
@settings(max_examples=150)
def test_an_entry_is_taken_out_exactly_though_the_file_changed_elsewhere(content: bytes) -> None:
    """Somebody adds a key at the end of the file after the install: that stays, and everything else is as it was."""
    text = content.decode()
    changed = jsonc.set_value(text, ("added",), 1) if text.removeprefix("\ufeff").strip() else text
    with machine(content) as one:
        one.install()
        between = one.file.read_bytes().decode()
        one.file.write_bytes(jsonc.set_value(between, ("added",), 1).encode())
        one.uninstall()
        left = ServerDocument(one.file.read_bytes().decode(), "jsonc", ("mcpServers",))
        wanted = ServerDocument(changed, "jsonc", ("mcpServers",))
        assert "pegboard" not in left.servers()
        assert left.rest([]) == wanted.rest([])


@pytest.mark.parametrize(
    "content",
    [
        b'{\n  "mcpServers": {}\n}\n',
        b'{\n  "mcpServers": {\n    "a": {"command": "b"}\n  }\n}\n',
        b'{\n\t"x": 1,\n\t"mcpServers": {\n\t\t"a": {} // why\n\t}\n}',
        b'{"mcpServers": {\n  "a": {},\n}}',
    ],
)
def test_without_note_and_backup_the_entry_is_taken_out_all_the_same(content: bytes) -> None:
    """Byte for byte, where the servers had a place of their own."""
    with machine(content) as one:
        one.install()
        shutil.rmtree(one.context.backups._folder)
        one.uninstall()
        assert one.file.read_bytes() == content


@given(JSONC)
@settings(max_examples=50)
def test_the_backup_is_not_needed(content: bytes) -> None:
    """The note alone undoes an install; the backup is for people."""
    with machine(content) as one:
        one.install()
        for kept in (one.context.backups._folder / "cursor").iterdir():
            if not kept.name.endswith(".note.json"):
                assert kept.read_bytes() == content
                kept.unlink()
        one.uninstall()
        assert one.file.read_bytes() == content


def test_replaced_servers_come_back() -> None:
    """`--replace` takes out what Pegboard serves, and uninstall gives it back."""
    served = {"command": "uvx", "args": ["mcp-server-time"]}
    content = json.dumps({"mcpServers": {"time": served, "mine": {"command": "other"}}}, indent=2).encode()
    with machine(content) as one:
        one.context.config.write_text(json.dumps({"mcpServers": {"clock": served}}))
        one.context = with_working_servers(one.context)
        assert one.install(replace=True).replaced == ("time",)
        assert list(json.loads(one.file.read_bytes())["mcpServers"]) == ["mine", "pegboard"]
        one.uninstall()
        assert one.file.read_bytes() == content


@pytest.mark.scenario("first hour: What an install took out or made is undone")
def test_replaced_servers_come_back_to_a_file_that_changed_since() -> None:
    """A client that writes its file anew does not lose them; what somebody wrote under such a name since stays."""
    served, mine = {"command": "uvx", "args": ["mcp-server-time"]}, {"command": "other"}
    twice = {"command": "npx", "args": ["-y", "git"], "env": {"TOKEN": "s3cr3t"}}
    with machine(json.dumps({"mcpServers": {"time": served, "git": twice, "mine": mine}}).encode()) as one:
        one.context.config.write_text(json.dumps({"mcpServers": {"clock": served, "git": twice}}))
        one.context = with_working_servers(one.context)
        one.install()
        one.install(replace=True)
        one.install(board="b")
        data = json.loads(one.file.read_bytes())
        data["mcpServers"]["git"] = {"command": "newer"}
        one.file.write_text(json.dumps({"theme": "dark", **data}, indent=4))
        assert dict(one.uninstall().restored) == {"time": served}
        wanted = {"mine": mine, "git": {"command": "newer"}, "time": served}
        assert json.loads(one.file.read_bytes()) == {"theme": "dark", "mcpServers": wanted}
        assert one.uninstall().change is None


def test_a_forced_install_gives_the_other_entry_back() -> None:
    """An entry of the same name that is not ours is refused, overwritten with force, and there again afterwards."""
    content = b'{"mcpServers": {"pegboard": {"command": "somebody-elses"}}}'
    with machine(content) as one:
        assert one.install().outcome == "refused"
        assert one.file.read_bytes() == content
        one.install(force=True)
        assert one.file.read_bytes() != content
        one.uninstall()
        assert one.file.read_bytes() == content
        one.install(force=True)
        one.file.write_text(json.dumps({**json.loads(one.file.read_bytes()), "theme": "dark"}))
        one.uninstall()
        assert json.loads(one.file.read_bytes()) == {**json.loads(content), "theme": "dark"}


def test_an_entry_of_ours_that_a_person_wrote_is_updated_under_its_name_and_taken_out() -> None:
    """Whatever it is called: there are never two, and uninstall does not bring it back."""
    with machine(b'{"mcpServers": {"peg": {"url": "http://localhost:7420/mcp"}, "x": {"command": "y"}}}') as one:
        one.install()
        servers = json.loads(one.file.read_bytes())["mcpServers"]
        assert servers["peg"] == {"url": "http://127.0.0.1:7420/mcp/cursor"}
        assert "pegboard" not in servers
        one.uninstall()
        assert json.loads(one.file.read_bytes()) == {"mcpServers": {"x": {"command": "y"}}}


def test_restore_refuses_a_file_that_changed_since() -> None:
    """And says what takes out the entry alone."""
    with machine() as one:
        one.install()
        one.file.write_bytes(one.file.read_bytes() + b"\n")
        with pytest.raises(ClientFileError, match=r"changed since the install; `pegboard uninstall cursor` takes out"):
            plan_uninstall(one.client, one.context, restore=True)
        assert plan_uninstall(one.client, replace(one.context, gateway=None)).names == ("pegboard",)
