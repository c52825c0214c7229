"""The chat tools, to the letter of their specification, and those beyond it."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest
import structlog.testing
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chats.conftest import Now
from chats.makers import ADA, OLD, START, Home, log, push, request, session, whole
from pegboard.catalog.registry import ToolRegistry
from pegboard.storage import Database, StorageError
from pegboard.tool import LanguageModelTextPart, LanguageModelToolResult, Tool
from pegboard.toolsets.chats.chats import Chats
from pegboard.toolsets.chats.current import CurrentDialog
from pegboard.toolsets.chats.tools import CHAT_TOOLS, ChatTool, chat_tools
from pegboard.toolsets.workspace import Workspace

pytestmark = pytest.mark.anyio

PREFIX = "copilot_chat_secretary_"


async def call(chats: Chats, name: str, /, **arguments: Any) -> dict[str, Any]:
    """A tool's answer; whatever it is, it is one JSON text, fits the output schema, and says over MCP what it is."""
    tool = next(tool for tool in chat_tools(chats) if tool.name == PREFIX + name)
    result = await tool.invoke(arguments)
    assert isinstance(result, LanguageModelToolResult)
    (part,) = result.content
    assert isinstance(part, LanguageModelTextPart)
    answer = json.loads(part.value)
    assert answer == result.data
    assert tool.output_schema is not None
    jsonschema_rs.validate(dict(tool.output_schema), answer)
    assert result.is_error is not (answer.get("success") is True)
    return answer


@pytest.fixture
def dialogs(home: Home) -> Home:
    """Two dialogs: `abc-123` with three requests, and `current`, the newest, with five."""
    home.chat("abc-123", session("one", "two", "three of abc"))
    later = session(*(f"request number {number}" for number in range(1, 6)), session_id="current")
    for each in later["requests"]:
        each["timestamp"] += 60_000
    home.chat("current", log(whole(later)), at=OLD + 60)
    return home


@pytest.mark.scenario("chats: Get request by index from current dialog")
async def test_a_request_of_the_current_dialog(dialogs: Home, chats: Chats) -> None:
    """The full text, however long, of the dialog with the newest activity."""
    assert await call(chats, "get_request", index=2) == {
        "success": True,
        "sessionId": "current",
        "request": "request number 2",
        "index": 2,
        "timestamp": START + 62_000,
        "totalRequests": 5,
    }
    del dialogs


async def test_a_clock_that_was_wrong_does_not_choose_the_current_dialog(home: Home, chats: Chats) -> None:
    """Nothing happened in a dialog after its file was written, whatever time it says."""
    skewed = session("from the future", session_id="skewed")
    skewed["requests"][0]["timestamp"] = 4_102_444_800_000
    home.chat("skewed", skewed, at=START / 1000)
    home.chat("now", session("newer"), at=START / 1000 + 60)
    assert (await call(chats, "get_first_request"))["firstRequest"] == "newer"
    assert [each["sessionId"] for each in (await call(chats, "list_sessions"))["sessions"]] == ["now", "skewed"]


async def test_a_dialog_that_moves_into_another_file_is_read_there(home: Home, chats: Chats, now: Now) -> None:
    """The editor begins a log for a session that was a document, or another editor goes on with it."""
    home.chat("moved", session("one", session_id="moved"))
    assert (await call(chats, "get_request", index=2, sessionId="moved"))["success"] is False
    home.chat("moved", log(whole(session("one", "two", session_id="moved"))), at=OLD + 1)
    now.later(3)
    assert (await call(chats, "get_request", index=2, sessionId="moved"))["request"] == "two"
    home.chat("moved", session("one", "two", "three"), workspace="w2", at=OLD + 2)
    now.later(3)
    assert (await call(chats, "get_request", index=3, sessionId="moved"))["request"] == "three"


async def test_an_exported_dialog_is_the_same_for_every_tool(home: Home, chats: Chats) -> None:
    """Whether it is listed, found or read: the one in which more was asked counts, whatever its file is called."""
    home.chat("one", session("first", session_id="one"))
    home.export("copy.json", session("first", "second", session_id="one"))
    assert (await call(chats, "get_request", index=2, sessionId="one"))["request"] == "second"
    assert [each["requestsCount"] for each in (await call(chats, "list_sessions"))["sessions"]] == [2]
    assert (await call(chats, "search", query="second"))["results"][0]["index"] == 2


async def test_a_damaged_dialog_is_listed_as_such(home: Home, chats: Chats) -> None:
    """An agent that misses something can see why."""
    home.chat("one", log(whole(session("first"))) + b"garbage\n" + log(push(["requests"], request("second", 2))))
    home.chat("two", session("sound"))
    listed = {each["sessionId"]: each for each in (await call(chats, "list_sessions"))["sessions"]}
    assert "broken" in listed["one"]["problem"]
    assert "problem" not in listed["two"]


@pytest.mark.scenario("chats: Get request by index from specific session")
async def test_a_request_of_a_certain_dialog(dialogs: Home, chats: Chats) -> None:
    """By its id; 3.0 is the whole number 3, and nothing is cut."""
    del dialogs
    for index in (3, 3.0):
        answer = await call(chats, "get_request", index=index, sessionId="abc-123")
        assert answer == {
            "success": True,
            "sessionId": "abc-123",
            "request": "three of abc",
            "index": 3,
            "timestamp": START + 3000,
            "totalRequests": 3,
        }


async def test_a_long_request_comes_whole(home: Home, chats: Chats) -> None:
    """With every character it has."""
    text = "wörd \0 \N{GRINNING FACE} " * 20_000
    home.chat("long", session(text))
    assert (await call(chats, "get_request", index=1))["request"] == text
    assert (await call(chats, "get_first_request"))["firstRequest"] == text[:80]


@pytest.mark.scenario("chats: Index less than 1")
@pytest.mark.parametrize("index", [0, -1, -(10**30)])
async def test_an_index_below_1(dialogs: Home, chats: Chats, index: int) -> None:
    """Before anything else is looked at."""
    del dialogs
    expected = {"success": False, "error": "Index must be 1 or greater"}
    assert await call(chats, "get_request", index=index) == expected
    assert await call(chats, "get_request", index=index, sessionId="nobody") == expected


@pytest.mark.scenario("chats: Index exceeds total requests")
async def test_an_index_beyond_the_last(dialogs: Home, chats: Chats) -> None:
    """Both numbers are told; undone requests do not count, and a dialog may be empty."""
    answer = await call(chats, "get_request", index=10)
    assert answer == {"success": False, "error": "Index 10 exceeds total requests (5)"}
    undone = session("one", "two", "three", session_id="undone")
    undone["requests"][1]["isHidden"] = True
    dialogs.chat("undone", undone)
    assert (await call(chats, "get_request", index=2, sessionId="undone"))["request"] == "three"
    answer = await call(chats, "get_request", index=3, sessionId="undone")
    assert answer["error"] == "Index 3 exceeds total requests (2)"
    dialogs.chat("empty", session(session_id="empty"))
    answer = await call(chats, "get_request", index=1, sessionId="empty")
    assert answer == {"success": False, "error": "Index 1 exceeds total requests (0)"}
    huge = await call(chats, "get_request", index=10**30)
    assert huge["error"] == f"Index {10**30} exceeds total requests (5)"


@pytest.mark.scenario("chats: Chat data not available")
async def test_a_session_without_its_file(dialogs: Home, chats: Chats) -> None:
    """One that only the editor's index knows, and one whose file cannot be read."""
    dialogs.index("ghost")
    dialogs.chat("broken", b"no log at all")
    for session_id in ("ghost", "broken"):
        answer = await call(chats, "get_request", index=99, sessionId=session_id)
        assert answer == {"success": False, "error": "Chat data not available for session"}
        answer = await call(chats, "get_response", index=1, sessionId=session_id)
        assert answer == {"success": False, "error": "Chat data not available for session"}


@pytest.mark.scenario("chats: Missing required index parameter")
async def test_an_index_is_required(dialogs: Home, chats: Chats) -> None:
    """Whatever else is given; null is as good as nothing."""
    del dialogs
    expected = {"success": False, "error": "Index parameter is required"}
    for arguments in ({}, {"index": None}, {"sessionId": "nobody"}, {"sessionId": None}):
        assert await call(chats, "get_request", **arguments) == expected
    (tool,) = [tool for tool in CHAT_TOOLS if tool.name.endswith("get_request")]
    assert "required" not in tool.input_schema
    assert "minimum" not in tool.input_schema["properties"]["index"]


@pytest.mark.scenario("chats: Get first request from current dialog")
async def test_the_first_request_of_the_current_dialog(dialogs: Home, chats: Chats) -> None:
    """Its first 80 characters, and when the dialog began."""
    assert await call(chats, "get_first_request") == {
        "success": True,
        "sessionId": "current",
        "firstRequest": "request number 1",
        "timestamp": START,
        "requestsCount": 5,
    }
    dialogs.chat("long", session("y" * 81, session_id="long"))
    answer = await call(chats, "get_first_request", sessionId="long")
    assert answer["firstRequest"] == "y" * 80


@pytest.mark.scenario("chats: Get first request from specific session")
async def test_the_first_request_of_a_certain_dialog(dialogs: Home, chats: Chats) -> None:
    """By its id; an empty id is none."""
    del dialogs
    assert await call(chats, "get_first_request", sessionId="abc-123") == {
        "success": True,
        "sessionId": "abc-123",
        "firstRequest": "one",
        "timestamp": START,
        "requestsCount": 3,
    }
    assert (await call(chats, "get_first_request", sessionId=""))["sessionId"] == "current"


@pytest.mark.scenario("chats: No active dialog")
async def test_no_dialog_at_all(home: Home, chats: Chats) -> None:
    """No editor, or none with a chat; the same for every tool that needs one."""
    expected = {"success": False, "error": "No active dialog found"}
    assert await call(chats, "get_first_request") == expected
    home.index("ghost")
    home.chat("broken", b"no log at all")
    assert await call(chats, "get_first_request") == expected
    assert await call(chats, "get_request", index=1) == expected


@pytest.mark.scenario("chats: Session not found")
@pytest.mark.parametrize(
    "session_id", ["non-existent", "../w1/chatSessions/abc-123", "/etc/passwd", "..", "a\0b", "%2e%2e"]
)
async def test_an_unknown_session(dialogs: Home, chats: Chats, session_id: str) -> None:
    """Also an id that would leave the folder: it is never made into a path."""
    del dialogs
    expected = {"success": False, "error": f"Session not found: {session_id}"}
    for name, arguments in (("get_first_request", {}), ("get_request", {"index": 1}), ("get_response", {"index": 1})):
        tool = next(tool for tool in chat_tools(chats) if tool.name == PREFIX + name)
        result = await tool.invoke({**arguments, "sessionId": session_id})
        assert json.loads(result.content[0].value) == expected


async def test_a_long_unknown_id_is_not_said_back_in_full(chats: Chats) -> None:
    """Its beginning says enough."""
    answer = await call(chats, "get_first_request", sessionId="x" * 100_000)
    assert answer["error"] == f"Session not found: {'x' * 200}…"


@pytest.mark.scenario("chats: First request unavailable")
async def test_a_session_without_a_first_request(home: Home, chats: Chats) -> None:
    """Nothing asked yet, only undone things, no text, or only known by name."""
    undone = session("one")
    undone["requests"][0]["shouldBeRemovedOnSend"] = True
    home.chat("undone", undone)
    home.chat("empty", session())
    home.chat("silent", session("  \n"))
    home.index("ghost")
    for session_id in ("undone", "empty", "silent", "ghost"):
        answer = await call(chats, "get_first_request", sessionId=session_id)
        assert answer == {"success": False, "error": "First request not available"}


@pytest.mark.parametrize("index", ["2", "two", 2.5, True, [2], {}])
async def test_an_index_that_is_no_whole_number_is_refused(chats: Chats, index: Any) -> None:
    """Clearly, and by name."""
    answer = await call(chats, "get_request", index=index)
    assert answer["isError"] is True
    assert answer["message"].startswith("index: ")
    assert "integer" in answer["message"]


@pytest.mark.scenario("chats: Tool description includes use cases")
@pytest.mark.parametrize("tool", CHAT_TOOLS)
def test_a_description_says_when_to_use_a_tool(tool: type[ChatTool]) -> None:
    """And explains every parameter and every field of the answer, with examples that are true."""
    text = tool.description
    when, parameters = text.index("Use this tool when:\n- "), text.index("\nParameters:\n- ")
    returns = text.index("\nReturns JSON")
    assert when < parameters < returns < text.index("\nExample usage scenarios:\n- ")
    for name, schema in tool.input_schema["properties"].items():
        assert f"- {name} ({schema['type']}" in text[parameters:returns]
        assert schema["description"]
        for example in schema["examples"]:
            jsonschema_rs.validate(schema, example)
    assert tool.output_schema is not None
    examples = [
        json.loads(each.replace(", …}", "}")) for each in re.findall(r"^- (\{.*\})$", text[returns:], re.MULTILINE)
    ]
    assert examples[0]["success"] is True
    for example in examples:
        jsonschema_rs.validate(dict(tool.output_schema), example)


@pytest.mark.scenario("chats: Tool description includes example usage")
@pytest.mark.parametrize("tool", CHAT_TOOLS)
def test_a_description_shows_calls_with_and_without_parameters(tool: type[ChatTool]) -> None:
    """Each of them one that the tool would take."""
    _, _, examples = tool.description.partition("Example usage scenarios:\n")
    calls = [json.loads(each) for each in re.findall(r"\{.*\}", examples)]
    assert len(calls) >= 2
    assert len({len(each) for each in calls}) > 1
    for arguments in calls:
        jsonschema_rs.validate(dict(tool.input_schema), arguments)
    assert not any("sessionId" in each or "workspace" in each for each in calls[:1])


@pytest.mark.scenario("chats: Tool registered successfully")
@pytest.mark.scenario("chats: Registration logged")
async def test_tools_are_registered_with_a_disposable_and_a_line_in_the_log(chats: Chats) -> None:
    """One for each; disposing of it takes the tool out again."""
    registry = ToolRegistry()
    with structlog.testing.capture_logs() as logs:
        subscriptions = [registry.register_tool(tool.name, tool) for tool in chat_tools(chats)]
    said = [entry["event"] for entry in logs]
    assert all(f"MCP tool registered: {tool.name}" in said for tool in CHAT_TOOLS)
    assert sorted(registry.static()) == sorted(tool.name for tool in CHAT_TOOLS)
    for subscription in subscriptions:
        subscription.dispose()
    assert registry.static() == {}


@pytest.mark.scenario("chats: Schema validation")
async def test_input_is_checked_before_the_call(dialogs: Home, chats: Chats) -> None:
    """Wrong types, unknown parameters, numbers out of bounds."""
    del dialogs
    for name, arguments, words in (
        ("get_request", {"index": 1, "sessionId": 5}, "sessionId"),
        ("get_request", {"index": 1, "session": "x"}, "session"),
        ("get_first_request", {"index": 1}, "index"),
        ("list_sessions", {"limit": 0}, "limit"),
        ("list_sessions", {"offset": -1}, "offset"),
        ("search", {"query": "x", "limit": 51}, "limit"),
        ("search", {"query": ["x"]}, "query"),
        ("get_response", {"index": 1, "offset": -5}, "offset"),
    ):
        answer = await call(chats, name, **arguments)
        assert answer["isError"] is True
        assert words in answer["message"]
    reached: list[Any] = []
    for tool in chat_tools(chats):
        tool.call = reached.append  # type: ignore[method-assign,assignment]
        assert (await tool.invoke({"nobody": "knows this"})).is_error
    assert reached == []


@pytest.mark.scenario("chats: Tool receives dependencies")
async def test_what_a_tool_needs_comes_through_its_constructor(dialogs: Home, chats: Chats) -> None:
    """The current dialog from one, sessions from the other."""
    del dialogs
    tool = CHAT_TOOLS[0](CurrentDialog(chats, Workspace(lambda: "/home/nobody")), chats)
    assert json.loads((await tool.invoke({"index": 1})).content[0].value)["error"] == "No active dialog found"
    assert json.loads((await tool.invoke({"index": 1, "sessionId": "current"})).content[0].value)["success"] is True


@pytest.mark.scenario("chats: Successful response format")
@pytest.mark.scenario("chats: Tool with successful execution")
async def test_an_answer_is_one_text_part_of_json(dialogs: Home, chats: Chats) -> None:
    """With `success` true, and not an error over MCP."""
    del dialogs
    for tool in chat_tools(chats):
        result = await tool.invoke({"index": 1} if "index" in tool.input_schema["properties"] else {})
        if tool.name.endswith("_search"):
            result = await tool.invoke({"query": "one"})
        assert isinstance(result, LanguageModelToolResult)
        (part,) = result.content
        assert isinstance(part, LanguageModelTextPart)
        assert json.loads(part.value)["success"] is True
        assert result.is_error is False


@pytest.mark.scenario("chats: Error response format")
@pytest.mark.scenario("chats: Tool with error handling")
async def test_a_failure_says_what_is_wrong_and_an_exception_too(home: Home, chats: Chats, database: Database) -> None:
    """Flat: success false with a text, or isError with a message."""
    home.chat("one", session("one"))
    assert await call(chats, "search", query=" ") == {"success": False, "error": "Query parameter is required"}
    await database.close()
    answer = await call(chats, "get_request", index=1)
    assert answer == {"isError": True, "message": str(StorageError("the storage is closed"))}


@pytest.mark.scenario("chats: Tool name format")
def test_names_begin_alike_and_are_snake_case() -> None:
    """A chat tool of another name cannot even be written."""
    assert {tool.name.removeprefix(PREFIX) for tool in CHAT_TOOLS} == {
        "get_request",
        "get_first_request",
        "get_response",
        "list_sessions",
        "search",
    }
    for name in (
        "get_request",
        "copilot_chat_secretary_",
        "copilot_chat_secretary_getRequest",
        "copilot_chat_secretary__x",
    ):
        with pytest.raises(ValueError, match="snake_case"):
            type("Wrong", (ChatTool,), {"name": name})
    between: type[ChatTool] = type("Between", (ChatTool,), {})
    assert type("Right", (between,), {"name": f"{PREFIX}right"}).name_prefix == PREFIX


async def test_a_chat_tool_is_registered_under_no_other_name(chats: Chats) -> None:
    """Whatever its class is called, what clients see begins as it should."""
    registry = ToolRegistry()
    with pytest.raises(ValueError, match=PREFIX):
        registry.register_tool("anything_else", chat_tools(chats)[0])
    assert registry.static() == {}
    registry.register_tool(f"{PREFIX}anything_else", chat_tools(chats)[0])


async def test_the_answer_to_a_request(home: Home, chats: Chats) -> None:
    """Its text, the tools and the files; a long one in pieces that join up."""
    data = session("one", "two")
    data["requests"][0]["response"] = [
        {"value": "A" * 20_000 + "B" * 5},
        {"kind": "toolInvocationSerialized", "toolId": "run", "toolSpecificData": {"rawInput": {"command": "ls"}}},
        *({"kind": "toolInvocationSerialized", "toolId": "x", "pastTenseMessage": "y" * 900} for _ in range(60)),
        {"kind": "textEditGroup", "uri": {"path": "/a.py"}},
    ]
    data["requests"][1].update(
        {"modelState": {"value": 3}, "response": [], "result": {"errorDetails": {"message": "off"}}}
    )
    home.chat("one", data)
    first = await call(chats, "get_response", index=1)
    assert first["toolCalls"][0] == {"name": "run", "input": {"command": "ls"}}
    assert (len(first["toolCalls"]), first["moreToolCalls"], first["editedFiles"]) == (50, 11, ["/a.py"])
    assert (first["status"], first["request"], first["totalRequests"]) == ("completed", "one", 2)
    rest = await call(chats, "get_response", index=1, offset=first["nextOffset"])
    assert first["response"] + rest["response"] == "A" * 20_000 + "B" * 5
    assert "nextOffset" not in rest
    failed = await call(chats, "get_response", index=2, sessionId="one")
    assert (failed["status"], failed["problem"], failed["response"]) == ("failed", "off", "")
    assert (await call(chats, "get_response"))["error"] == "Index parameter is required"


async def test_sessions_are_listed_newest_first_in_pages(dialogs: Home, chats: Chats) -> None:
    """With title, workspace and counts; of one folder if wanted."""
    dialogs.chat("other", session("elsewhere", customTitle="Mine"), workspace="w2", folder="file:///srv/app")
    page = await call(chats, "list_sessions", limit=2)
    assert [each["sessionId"] for each in page["sessions"]] == ["current", "abc-123"]
    assert page["pagination"] == {"total": 3, "limit": 2, "offset": 0, "hasMore": True}
    first = page["sessions"][0]
    assert (first["title"], first["workspace"], first["requestsCount"]) == ("request number 1", "/home/ada/shop", 5)
    assert first["lastActivity"] == "2026-01-01T00:01:05Z"
    rest = await call(chats, "list_sessions", limit=2, offset=2)
    assert [each["title"] for each in rest["sessions"]] == ["Mine"]
    assert rest["pagination"]["hasMore"] is False
    for place in (ADA, "/home/ada"):
        assert (await call(chats, "list_sessions", workspace=place))["pagination"]["total"] == 2
    assert (await call(chats, "list_sessions", workspace="/home/ad"))["sessions"] == []


async def test_words_are_found_in_requests_and_answers(dialogs: Home, chats: Chats) -> None:
    """Marked, with what the other tools need to read on."""
    del dialogs
    answer = await call(chats, "search", query="three")
    assert answer["results"] == [
        {
            "sessionId": "abc-123",
            "title": "one",
            "workspace": "/home/ada/shop",
            "index": 3,
            "timestamp": START + 3000,
            "excerpt": "<mark>three</mark> of abc",
        }
    ]
    assert answer["pagination"]["total"] == 1


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.sampled_from(CHAT_TOOLS),
    st.dictionaries(
        st.sampled_from(["index", "sessionId", "limit", "offset", "workspace", "query"]),
        st.none() | st.integers() | st.text(max_size=8) | st.floats() | st.lists(st.integers(), max_size=1),
    ),
)
def test_whatever_is_asked_the_answer_fits(home: Home, tool: type[ChatTool], arguments: dict[str, Any]) -> None:
    """Any arguments: an answer of one of the three shapes."""
    import asyncio

    from pegboard.storage import SqliteDatabase

    home.chat("one", log(whole(session("one")), push(["requests"], request("two", 2))))

    async def ask() -> None:
        database = SqliteDatabase(home.folder / "any.db")
        await database.open()
        chats = Chats(database, home.sources())
        try:
            result = await tool(CurrentDialog(chats), chats).invoke(arguments)
            assert tool.output_schema is not None
            jsonschema_rs.validate(dict(tool.output_schema), json.loads(result.content[0].value))
        finally:
            await chats.close()
            await database.close()

    asyncio.run(ask())


def test_every_tool_is_a_tool_that_reads() -> None:
    """The base class of all static tools, and hints that say so."""
    for tool in CHAT_TOOLS:
        assert issubclass(tool, Tool)
        assert tool.annotations is not None
        assert tool.annotations["readOnlyHint"] is True
        assert tool.annotations["openWorldHint"] is False
