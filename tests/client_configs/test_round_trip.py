"""Install then uninstall is the identity on bytes, whatever a file looks like; and nothing but our entry changes."""

from __future__ import annotations

import json
import shutil
import tempfile
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from client_configs.places import context_of, with_working_servers
from pegboard.client_configs.context import InstallContext, InstallOptions
from pegboard.client_configs.document import ClientFileError, ServerDocument
from pegboard.client_configs.install import apply_install, plan_install
from pegboard.client_configs.table import CLIENTS, find_client
from pegboard.client_configs.uninstall import apply_uninstall, plan_uninstall
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


@contextmanager
def machine() -> Generator[InstallContext]:
    folder = Path(tempfile.mkdtemp(prefix="pegboard-clients-"))
    try:
        yield context_of(folder)
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


def round_trip(
    client_id: str, content: bytes | None, options: InstallOptions | None = None
) -> tuple[bytes, bytes | None]:
    """What the file holds after an install, and after the uninstall."""
    client = find_client(client_id)
    with machine() as context:
        file = client.target(context.place)
        assert file is not None
        if content is not None:
            file.path.parent.mkdir(parents=True)
            file.path.write_bytes(content)
        plan = plan_install(client, context, options or InstallOptions())
        assert plan.is_change
        apply_install(plan, context)
        between = file.path.read_bytes()
        assert plan_install(client, context, options or InstallOptions()).outcome == "none"
        undo = plan_uninstall(client, context)
        assert undo.names == ("pegboard",)
        apply_uninstall(undo, context)
        assert not list(file.path.parent.glob(".*.draft"))
        return between, file.path.read_bytes() if file.path.exists() else None


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


@pytest.mark.parametrize("client", [client.id for client in CLIENTS if not client.import_only])
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_a_file_that_install_made_is_gone_after_uninstall(client: str, transport: Any) -> None:
    """With the folders that were made for it."""
    program = find_client(client)
    with machine() as context:
        file = program.target(context.place)
        if file is None or (transport == "http" and not program.style.takes_http):
            return
        apply_install(plan_install(program, context, InstallOptions(kind=transport)), context)
        assert file.path.exists()
        apply_uninstall(plan_uninstall(program, context), context)
        assert not context.place.home.exists()


@given(JSONC, st.booleans())
@settings(max_examples=100)
def test_the_outcome_is_the_same_after_installs_in_a_row(content: bytes, replaces: bool) -> None:
    """HTTP, then a command, then another board: the last one alone is there, and uninstall undoes all of them."""
    client = find_client("cursor")
    with machine() as context:
        file = client.target(context.place)
        assert file is not None
        file.path.parent.mkdir(parents=True)
        file.path.write_bytes(content)
        for options in (
            InstallOptions(),
            InstallOptions(kind="stdio", replace=replaces),
            InstallOptions(board="b"),
        ):
            apply_install(plan_install(client, context, options), context)
        once, _ = round_trip("cursor", content, InstallOptions(board="b"))
        assert file.path.read_bytes() == once
        apply_uninstall(plan_uninstall(client, context), context)
        assert file.path.read_bytes() == content


@given(JSONC)
@settings(max_examples=150)
def test_an_entry_is_taken_out_exactly_though_the_file_changed_elsewhere(content: bytes) -> None:
    """Somebody adds a key at the end of the file after the install: that stays, and everything else is as it was."""
    client = find_client("cursor")
    text = content.decode()
    changed = jsonc.set_value(text, ("added",), 1) if text.removeprefix("\ufeff").strip() else text
    with machine() as context:
        file = client.target(context.place)
        assert file is not None
        file.path.parent.mkdir(parents=True)
        file.path.write_bytes(content)
        apply_install(plan_install(client, context, InstallOptions()), context)
        between = file.path.read_bytes().decode()
        file.path.write_bytes(jsonc.set_value(between, ("added",), 1).encode())
        apply_uninstall(plan_uninstall(client, context), context)
        left = ServerDocument(file.path.read_bytes().decode(), "jsonc", ("mcpServers",))
        wanted = ServerDocument(changed, "jsonc", ("mcpServers",))
        assert "pegboard" not in left.servers()
        assert left.rest([]) == wanted.rest([])


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "mcpServers": {}\n}\n',
        '{\n  "mcpServers": {\n    "a": {"command": "b"}\n  }\n}\n',
        '{\n\t"x": 1,\n\t"mcpServers": {\n\t\t"a": {} // why\n\t}\n}',
        '{"mcpServers": {\n  "a": {},\n}}',
    ],
)
def test_without_note_and_backup_the_entry_is_taken_out_all_the_same(text: str) -> None:
    """Byte for byte, where the servers had a place of their own."""
    client = find_client("cursor")
    with machine() as context:
        file = client.target(context.place)
        assert file is not None
        file.path.parent.mkdir(parents=True)
        file.path.write_text(text)
        apply_install(plan_install(client, context, InstallOptions()), context)
        shutil.rmtree(context.backups._folder)
        apply_uninstall(plan_uninstall(client, context), context)
        assert file.path.read_text() == text


@given(JSONC)
@settings(max_examples=50)
def test_the_backup_is_not_needed(content: bytes) -> None:
    """The note alone undoes an install; the backup is for people."""
    client = find_client("cursor")
    with machine() as context:
        file = client.target(context.place)
        assert file is not None
        file.path.parent.mkdir(parents=True)
        file.path.write_bytes(content)
        apply_install(plan_install(client, context, InstallOptions()), context)
        for kept in (context.backups._folder / "cursor").iterdir():
            if not kept.name.endswith(".note.json"):
                assert kept.read_bytes() == content
                kept.unlink()
        apply_uninstall(plan_uninstall(client, context), context)
        assert file.path.read_bytes() == content


def test_replaced_servers_come_back() -> None:
    """`--replace` takes out what Pegboard serves, and uninstall gives it back."""
    served = {"command": "uvx", "args": ["mcp-server-time"]}
    content = json.dumps({"mcpServers": {"time": served, "mine": {"command": "other"}}}, indent=2).encode()
    client = find_client("cursor")
    with machine() as bare:
        bare.config.write_text(json.dumps({"mcpServers": {"clock": served}}))
        context = with_working_servers(bare)
        file = client.target(context.place)
        assert file is not None
        file.path.parent.mkdir(parents=True)
        file.path.write_bytes(content)
        plan = plan_install(client, context, InstallOptions(replace=True))
        assert plan.replaced == ("time",)
        apply_install(plan, context)
        assert list(json.loads(file.path.read_bytes())["mcpServers"]) == ["mine", "pegboard"]
        apply_uninstall(plan_uninstall(client, context), context)
        assert file.path.read_bytes() == content


def test_a_forced_install_gives_the_other_entry_back() -> None:
    """An entry of the same name that is not ours is refused, overwritten with force, and there again afterwards."""
    content = b'{"mcpServers": {"pegboard": {"command": "somebody-elses"}}}'
    client = find_client("cursor")
    with machine() as context:
        file = client.target(context.place)
        assert file is not None
        file.path.parent.mkdir(parents=True)
        file.path.write_bytes(content)
        refused = plan_install(client, context, InstallOptions())
        assert refused.outcome == "refused"
        apply_install(refused, context)
        assert file.path.read_bytes() == content
        apply_install(plan_install(client, context, InstallOptions(force=True)), context)
        assert file.path.read_bytes() != content
        apply_uninstall(plan_uninstall(client, context), context)
        assert file.path.read_bytes() == content


def test_an_entry_of_ours_that_a_person_wrote_is_updated_under_its_name_and_taken_out() -> None:
    """Whatever it is called: there are never two, and uninstall does not bring it back."""
    content = b'{"mcpServers": {"peg": {"url": "http://localhost:7420/mcp"}, "x": {"command": "y"}}}'
    client = find_client("cursor")
    with machine() as context:
        file = client.target(context.place)
        assert file is not None
        file.path.parent.mkdir(parents=True)
        file.path.write_bytes(content)
        apply_install(plan_install(client, context, InstallOptions()), context)
        servers = json.loads(file.path.read_bytes())["mcpServers"]
        assert servers["peg"] == {"url": "http://127.0.0.1:7420/mcp/cursor"}
        assert "pegboard" not in servers
        apply_uninstall(plan_uninstall(client, context), context)
        assert json.loads(file.path.read_bytes()) == {"mcpServers": {"x": {"command": "y"}}}


def test_restore_refuses_a_file_that_changed_since() -> None:
    """And says what takes out the entry alone."""
    client = find_client("cursor")
    with machine() as context:
        apply_install(plan_install(client, context, InstallOptions()), context)
        file = client.target(context.place)
        assert file is not None
        file.path.write_bytes(file.path.read_bytes() + b"\n")
        with pytest.raises(ClientFileError, match=r"changed since the install; `pegboard uninstall cursor` takes out"):
            plan_uninstall(client, context, restore=True)
        other = replace(context, gateway=None)
        assert plan_uninstall(client, other).names == ("pegboard",)
