"""Sessions of VS Code in all their versions become chats."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chats.makers import START, request, session
from pegboard.toolsets.chats.dialog import SHAPE, chat_of, chat_of_export
from pegboard.toolsets.chats.log import prune
from pegboard.toolsets.chats.reading import UnreadableChat
from pegboard.toolsets.chats.session import ChatRequest, ChatSession, Status

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def record(data: dict[str, Any]) -> ChatSession:
    return ChatSession.of(chat_of(data), "abc-123", "Code", "/chat.json", START + 99_000)


def test_the_record_behind_the_tools() -> None:
    """All of its fields, from a session of version 3."""
    found = record(session("x" * 100, "second"))
    assert found.first_request_preview == "x" * 80
    assert (found.first_seen, found.last_seen) == (START, START + 2000)
    assert (found.requests_count, found.status) == (2, "completed")
    assert (found.agent_id, found.model_id) == ("github.copilot.editsAgent", "copilot/gpt-5")
    assert found.chat_json_path == "/chat.json"
    assert ChatSession.from_record(found.to_record()) == found


def test_a_preview_begins_with_the_first_word() -> None:
    """Blank lines before it, be they more than 80, are none of it; blank lines alone are nothing."""
    assert record(session("\n" * 90 + " real text")).first_request_preview == "real text"
    assert record(session("\n \n")).first_request_preview is None


@pytest.mark.parametrize(
    ("data", "texts", "last_seen"),
    [
        # Version 1: the message is a text, the answer too; no times.
        ({"requests": [{"message": "one", "response": "yes"}]}, ["one"], START + 99_000),
        # Version 2: the whole session has a time.
        (
            {
                "version": 2,
                "creationDate": START,
                "lastMessageDate": START + 5,
                "requests": [{"message": {"text": "one"}}],
            },
            ["one"],
            START + 5,
        ),
        ({"version": 3, "creationDate": START, "requests": []}, [], START),
        # One that is still to come, with things nobody knows yet.
        (
            {"version": 9, "creationDate": START, "requests": [{**request("one"), "hologram": {}}]},
            ["one"],
            START + 1000,
        ),
        # The text is only in the parts.
        (
            {"requests": [{"message": {"parts": [{"text": "o"}, {"x": 1}, {"text": "ne"}]}}]},
            ["one"],
            START + 99_000,
        ),
        ({"requests": [None, 5, "x", [], {"message": 7}]}, [""], START + 99_000),
    ],
)
def test_every_version_is_read(data: dict[str, Any], texts: list[str], last_seen: int) -> None:
    """What a version lacks is missing, and no more."""
    chat = chat_of(data)
    assert [each.text for each in chat.requests] == texts
    assert record(data).last_seen == last_seen


@pytest.mark.parametrize(
    "undone", [{"isHidden": True}, {"shouldBeRemovedOnSend": True}, {"shouldBeRemovedOnSend": {"requestId": "x"}}]
)
def test_undone_requests_do_not_count(undone: dict[str, Any]) -> None:
    """Neither in number nor as the first, nor as the last activity."""
    data = session("gone", "one", "two", "gone too")
    data["requests"][0].update(undone)
    data["requests"][3].update(undone)
    found = record(data)
    assert (found.requests_count, found.first_request_preview, found.last_seen) == (2, "one", START + 3000)


@pytest.mark.parametrize(
    ("more", "status"),
    [
        ({"modelState": {"value": 0}}, "pending"),
        ({"modelState": {"value": 1}}, "completed"),
        ({"modelState": {"value": 2}}, "canceled"),
        ({"modelState": {"value": 3}}, "failed"),
        ({"modelState": {"value": 4}}, "in_progress"),
        ({"modelState": None, "isCanceled": True}, "canceled"),
        ({"modelState": {"value": 77}, "result": {"errorDetails": {"message": "off"}}}, "failed"),
        ({"modelState": None}, "completed"),
        ({"modelState": True, "result": {"errorDetails": {"code": "canceled"}}}, "canceled"),
    ],
)
def test_how_a_request_ended(more: dict[str, Any], status: Status) -> None:
    """From the model's state, or from what there was before there was one."""
    data = session("one")
    data["requests"][0].update(more)
    assert record(data).status == status


def test_a_request_without_a_result_is_under_way() -> None:
    """With the beginning of an answer, or still without."""
    base = {"message": "one"}
    assert record({"requests": [base]}).status == "pending"
    assert record({"requests": [{**base, "response": [{"value": "I"}]}]}).status == "in_progress"
    assert record({"requests": []}).status == "pending"


PARTS: list[dict[str, Any]] = [
    {"kind": "thinking", "value": "Hmm, secret thoughts", "id": "t"},
    {"value": "I looked at ", "supportThemeIcons": False},
    {"kind": "inlineReference", "inlineReference": {"$mid": 1, "path": "/home/ada/shop/pay.py", "scheme": "file"}},
    {
        "kind": "inlineReference",
        "name": "charge",
        "inlineReference": {"name": "x", "location": {"uri": {"path": "/a"}}},
    },
    {"value": " and changed it."},
    {
        "kind": "toolInvocationSerialized",
        "toolId": "copilot_runInTerminal",
        "toolCallId": "1",
        "invocationMessage": {"value": "Running tests"},
        "pastTenseMessage": "Ran tests",
        "toolSpecificData": {"kind": "terminal", "commandLine": {"original": "pytest"}},
        "resultDetails": {"input": "ignored", "output": [{"type": "embed", "isText": True, "value": "2 passed"}]},
    },
    {"kind": "toolInvocationSerialized", "toolId": "copilot_readFile", "resultDetails": {"isError": True}},
    {"kind": "textEditGroup", "uri": {"path": "/home/ada/shop/pay.py"}, "edits": [[{"text": "x" * 100}]]},
    {"kind": "textEditGroup", "uri": {"path": "/home/ada/shop/pay.py"}, "edits": []},
    {"kind": "progressTaskSerialized", "content": {"value": "Working"}},
    {"kind": "markdownVuln", "content": {"value": " Done."}},
    {"kind": "from the future", "value": "unheard of"},
]


@pytest.mark.parametrize("keep", [False, True])
def test_the_answer_is_its_words_and_beside_them_what_was_done(keep: bool) -> None:
    """Thoughts and progress are no part of it; tools and edits stand aside. What a log keeps is enough for that."""
    data = session("one")
    data["requests"][0]["response"] = PARTS
    found = chat_of(prune(data, SHAPE) if keep else data).requests[0]
    assert found.answer == "I looked at `pay.py``charge` and changed it. Done."
    assert found.edited == ["/home/ada/shop/pay.py"]
    first, second = found.tool_calls
    assert (first.name, first.message, first.output) == ("copilot_runInTerminal", "Ran tests", "2 passed")
    assert first.input == {"original": "pytest"}
    assert (second.name, second.failed) == ("copilot_readFile", True)


def test_an_export_names_its_session_within_its_results() -> None:
    """It has no id of its own; a file that has no requests is no chat at all."""
    assert chat_of_export({"initialLocation": "panel", "requests": [request("one")]}).session_id == "inner"
    for other in ({"name": "package", "version": "1.0.0"}, {"requests": {}}, [], "x", None):
        with pytest.raises(UnreadableChat):
            chat_of_export(other)


@given(st.dictionaries(st.sampled_from(sorted(SHAPE)), ANYTHING), st.lists(ANYTHING, max_size=3), ANYTHING)
def test_wrong_types_in_every_field_do_no_harm(data: dict[str, Any], requests: list[Any], part: Any) -> None:
    """Whatever stands anywhere, there is a chat, a record and a kept request that is the same."""
    odd = dict.fromkeys(request("x"), part)
    chat = chat_of(
        {**data, "requests": [*requests, odd, {**request("x"), "response": [part, {"kind": part, "value": part}]}]}
    )
    found = ChatSession.of(chat, "id", "Code", "/p", START)
    assert ChatSession.from_record(found.to_record()) == found
    for each in chat.requests:
        kept = ChatRequest.from_dict(each.to_dict())
        assert (kept.text, kept.answer, kept.timestamp) == (each.text, each.answer, each.timestamp)


def _like(value: Any) -> st.SearchStrategy[Any]:
    """Anything in the form of a value, with something else here and there."""
    if isinstance(value, dict):
        return st.fixed_dictionaries({}, optional={key: _like(item) for key, item in value.items()}) | ANYTHING
    if isinstance(value, list):
        return st.lists(st.one_of(*map(_like, value), ANYTHING), max_size=3) | ANYTHING
    return st.just(value) | ANYTHING


WHOLE = session("one")
WHOLE["requests"] = [
    {
        **request("one"),
        "response": PARTS,
        "result": {"errorDetails": {"message": "off", "code": "canceled", "responseIsIncomplete": True}},
        "isHidden": {"because": "x"},
        "shouldBeRemovedOnSend": {"requestId": "x", "afterUndoStop": "y"},
        "isCanceled": True,
    }
]


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None)
@given(_like(WHOLE).filter(lambda data: isinstance(data, dict)))
def test_what_a_log_keeps_tells_the_same_chat(data: dict[str, Any]) -> None:
    """A session is the same as a document and as a log: what is undone, failed or done does not depend on it."""
    assert repr(chat_of(prune(data, SHAPE))) == repr(chat_of(data))


@pytest.mark.parametrize(
    ("more", "count", "status"),
    [
        ({"shouldBeRemovedOnSend": {"requestId": "x"}}, 0, "pending"),
        ({"isHidden": {"why": 1}}, 0, "pending"),
        ({"modelState": None, "result": {"errorDetails": {"responseIsIncomplete": True}}}, 1, "failed"),
    ],
)
def test_a_log_knows_what_was_undone_and_what_failed(more: dict[str, Any], count: int, status: Status) -> None:
    """Also where only an object says so whose keys nobody looks at."""
    data = session("one")
    data["requests"][0].update(more)
    found = record(prune(data, SHAPE))
    assert (found.requests_count, found.status) == (count, status)
