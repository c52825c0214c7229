"""Which private parts of the SDK are used, and where: all of them stand here, and test_sdk_contract.py tests each."""

from __future__ import annotations

import ast
import gc
import importlib
import importlib.metadata
import inspect
import re
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "pegboard"
GATEWAY, SESSIONS = "sdk/server.py", "sdk/sessions.py"

# Every private name of the SDK that is used, by file. Add to it only with a test of its behaviour there.
PRIVATE = {
    GATEWAY: {"_connection", "_request_outbound"},
    SESSIONS: {
        "_admit_session",
        "_serve_opening_request",
        "_handle_stateful_request",
        "_server_instances",
        "_session_owners",
        "_discard_session",
        "_idle_timeout",
        "_create_event_data",
        "_create_error_response",
        # For batches, which tests/gateway/test_batches.py sends.
        "_handle_post_request",
        "_validate_accept_header",
        "_check_content_type",
        "_read_stream_writer",
        "_request_streams",
        "_message_metadata",
        "_terminate_unanswered_request",
        "_clean_up_memory_streams",
    },
}
# Private names of others than the SDK.
OTHERS = {"os._exit", "threading._register_atexit"}


# Where it stands


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def is_sdk(module: str) -> bool:
    return module.partition(".")[0] in {"mcp", "mcp_types"}


def private_imports(tree: ast.AST) -> set[str]:
    """Private modules of the SDK, and private names of its modules."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        found |= {module for module in modules if is_sdk(module) and any(map(is_private, module.split(".")))}
    return found


def foreign_attributes(tree: ast.AST) -> set[str]:
    """Private attributes of anything but `self`, also where they are reached by their name as a text."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            text = ast.unparse(node)
            if not re.match(r"(self|cls|super\(\))\.", text) or text.count(".") > 1:
                found.add(text)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"getattr", "setattr", "hasattr", "delattr"}:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and is_private(name.value):
                found.add(f"{ast.unparse(node.args[0])}.{name.value}")
    # What is only an own attribute of an own attribute is no contact with anybody.
    own = re.compile(r"(self|cls)\.[\w.]*$")
    return {text for text in found if not own.match(text) or text.split(".")[-1] in sdk_private()}


def names_within(tree: ast.AST) -> set[str]:
    """Private names that a class defines, assigns, reads or calls on itself."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found.add(node.name)
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in {"self", "cls", "super()"}:
            found.add(node.attr)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return {name for name in found if is_private(name)}


def privates_of(base: type) -> set[str]:
    """All private names of a class of the SDK, those that exist only on its instances included."""
    found: set[str] = set()
    for each in base.__mro__:
        if is_sdk(each.__module__):
            found |= names_within(ast.parse(textwrap.dedent(inspect.getsource(each))))
    return found


def imported_names(tree: ast.AST) -> dict[str, Any]:
    """What each name of the SDK stands for that a module imports."""
    return {
        alias.asname or alias.name: getattr(importlib.import_module(node.module), alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and is_sdk(node.module)
        for alias in node.names
    }


def inherited_privates(tree: ast.AST) -> set[str]:
    """Private names that our own classes share with the classes of the SDK that they extend."""
    known, found = imported_names(tree), set[str]()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for base in node.bases:
            name = base.value if isinstance(base, ast.Subscript) else base
            sdk_class = known.get(name.id) if isinstance(name, ast.Name) else None
            if isinstance(sdk_class, type):
                found |= names_within(node) & privates_of(sdk_class)
    return found


@cache
def sdk_private() -> set[str]:
    """All private names of the classes of the SDK that we have to do with."""
    ours = (Server, ServerSession, Connection, StreamableHTTPSessionManager, StreamableHTTPServerTransport)
    return set[str]().union(*map(privates_of, ours))


@cache
def trees() -> dict[str, ast.Module]:
    """Every file of the source, by its path; read by whichever worker runs these tests."""
    # So many nodes are not to be looked through by each collection of garbage.
    gc.disable()
    found = {str(path.relative_to(SOURCE)): ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    gc.freeze()
    gc.enable()
    return found


def test_no_private_module_or_name_of_the_sdk_is_imported() -> None:
    """Not even in `sdk/`: what it uses of them it reaches through objects that it was given."""
    found = {file: private_imports(tree) for file, tree in trees().items()}
    assert {file: names for file, names in found.items() if names} == {}


def test_private_parts_of_the_sdk_are_used_where_it_is_written_down() -> None:
    """Attributes of the SDK's objects, and what our subclasses share with its classes: the list above, nothing else.

    A name of our own that an update of the SDK gives to something of its own is found here, too.
    """
    used: dict[str, set[str]] = {}
    for file, tree in trees().items():
        foreign = foreign_attributes(tree) - OTHERS
        used[file] = {text.split(".")[-1] for text in foreign} | inherited_privates(tree)
    assert {file: names for file, names in used.items() if names} == PRIVATE


def test_the_scan_sees_what_it_should() -> None:
    """It would find each way of touching a private part."""
    tree = ast.parse(
        "import mcp.shared._otel\n"
        "from mcp.shared import _compat\n"
        "from mcp.server.lowlevel import Server\n"
        "class Own(Server[int]):\n"
        "    def _handle_discover(self): self._session_manager = 1; self._own = 2\n"
        "def f(x): return x.session._connection, getattr(x, '_hidden'), x.__class__, self._own\n"
    )
    assert private_imports(tree) == {"mcp.shared._otel", "mcp.shared._compat"}
    assert foreign_attributes(tree) == {"x.session._connection", "x._hidden"}
    assert inherited_privates(tree) == {"_handle_discover", "_session_manager"}


def test_only_the_sdk_room_touches_private_parts() -> None:
    """The list itself keeps to the house rule, and names no file or name twice or in vain."""
    assert all(file.startswith("sdk/") for file in PRIVATE)
    assert set(PRIVATE) <= set(trees())


def test_the_sessions_module_names_every_private_part_it_uses() -> None:
    """Whoever updates the SDK finds the list in the module's first lines."""
    docstring = ast.get_docstring(trees()[SESSIONS]) or ""
    named = {name for name in re.findall(r"`(\w+)`", docstring) if is_private(name)}
    assert named == PRIVATE[SESSIONS]


def test_the_installed_sdk_is_the_one_that_is_pinned() -> None:
    """2.3, as constraints.txt has it: everything was looked up in that."""
    pinned = dict(re.findall(r"^(mcp|mcp-types)==(.+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))
    installed = {name: importlib.metadata.version(name) for name in ("mcp", "mcp-types")}
    assert installed == pinned
    assert all(version.startswith("2.3.") for version in installed.values())
