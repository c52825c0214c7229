"""Transcripts of Claude Code, behind the same face."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chats.makers import START, Home, log
from chats.test_dialog import ANYTHING
from pegboard.toolsets.chats.claude_code import ClaudeCode, Transcript
from pegboard.toolsets.chats.reading import LineReading
from pegboard.toolsets.chats.session import Chat, Session

WHEN = "2026-01-01T00:00:0{}.000Z"


def line(kind: str, uuid: int, parent: int | None, content: Any, **more: Any) -> dict[str, Any]:
    """One line of a transcript."""
    message = {"role": kind, "content": content, **({"model": "claude-x"} if kind == "assistant" else {})}
    return {
        "type": kind,
        "uuid": str(uuid),
        "parentUuid": None if parent is None else str(parent),
        "sessionId": "s",
        "cwd": "/home/ada/shop",
        "timestamp": WHEN.format(uuid % 10),
        "isSidechain": False,
        "message": message,
        **more,
    }


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


DIALOG: tuple[dict[str, Any], ...] = (
    {"type": "summary", "summary": "Fixing the till", "leafUuid": "9"},
    {"type": "file-history-snapshot", "snapshot": {}},
    line("user", 1, None, "Fix the till<system-reminder>be nice</system-reminder>"),
    line("assistant", 2, 1, [{"type": "thinking", "thinking": "hmm"}]),
    line("assistant", 3, 2, [{"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]),
    line("user", 4, 3, [{"type": "tool_result", "tool_use_id": "t1", "content": text("till.py"), "is_error": False}]),
    line("user", 40, 4, "I am no request", isMeta=True),
    line("user", 41, 4, "Helper, look", isSidechain=True),
    line("assistant", 5, 4, text("It is fixed.")),
    line("user", 6, 5, "<command-name>/review</command-name>\n<command-args>till.py</command-args>"),
    line("user", 7, 6, "<local-command-stdout>done</local-command-stdout>"),
    line("user", 8, 7, [*text("And the drawer?"), {"type": "image", "source": {}}]),
    line("assistant", 9, 8, text("Open.")),
)


def read(*lines: dict[str, Any]) -> Chat:
    return LineReading(Transcript()).read(io.BytesIO(log(*lines)))


def test_a_transcript_is_a_chat() -> None:
    """What was typed are the requests; tools and their results, the program's own words and helpers are not."""
    chat = read(*DIALOG)
    assert [each.text for each in chat.requests] == ["Fix the till", "/review till.py", "And the drawer?"]
    first = chat.requests[0]
    assert first.answer == "It is fixed."
    assert [(call.name, call.input, call.output) for call in first.tool_calls] == [
        ("Bash", {"command": "ls"}, "till.py")
    ]
    assert (first.model_id, first.timestamp) == ("claude-x", START + 1000)
    assert (chat.title, list(chat.folders)) == ("Fixing the till", ["/home/ada/shop"])
    assert Session.of(chat, "s", "Claude Code", "/p", 0).last_seen == START + 8000


def test_a_request_that_was_gone_back_behind_does_not_count() -> None:
    """Nor what followed it: only what stands where the dialog is now."""
    chat = read(
        line("user", 1, None, "one"),
        line("assistant", 2, 1, text("first")),
        line("user", 3, 2, "wrong"),
        line("assistant", 4, 3, text("hm")),
        line("user", 5, 4, "wrong too"),
        line("user", 6, 2, "right"),
        line("assistant", 7, 6, text("good")),
    )
    assert [(each.text, each.answer) for each in chat.requests] == [("one", "first"), ("right", "good")]


def test_how_a_request_of_a_transcript_ended() -> None:
    """Interrupted, failed, under way, done."""
    asked = line("user", 1, None, "one")
    for rest, status in (
        ([], "pending"),
        ([line("assistant", 2, 1, text("ok"))], "completed"),
        ([line("assistant", 2, 1, [{"type": "tool_use", "id": "t", "name": "Bash"}])], "in_progress"),
        ([line("user", 2, 1, text("[Request interrupted by user for tool use]"))], "canceled"),
        ([line("assistant", 2, 1, text("overloaded"), isApiErrorMessage=True)], "failed"),
    ):
        assert read(asked, *rest).requests[-1].status == status
        assert len(read(asked, *rest).requests) == 1


def test_a_broken_line_of_a_transcript_hides_no_other() -> None:
    """Each line stands for itself; the damage is reported unless it is the last line."""
    good = log(line("user", 1, None, "one")), log(line("user", 3, 1, "two"))
    chat = LineReading(Transcript()).read(io.BytesIO(good[0] + b'{"half\n' + good[1]))
    assert [each.text for each in chat.requests] == ["one", "two"]
    assert chat.problem is not None
    assert LineReading(Transcript()).read(io.BytesIO(good[0] + b'{"half')).problem is None


@given(st.lists(st.sampled_from(DIALOG), max_size=12), st.data())
def test_a_transcript_read_in_two_goes_is_the_same(lines: list[dict[str, Any]], data: st.DataObject) -> None:
    """Wherever it was cut, as while it is written."""
    whole = log(*lines)
    cut = data.draw(st.integers(0, len(whole)))
    reading = LineReading(Transcript())
    reading.read(io.BytesIO(whole[:cut]))
    assert reading.read(io.BytesIO(whole)) == read(*lines)


@given(st.lists(st.dictionaries(st.sampled_from(sorted(DIALOG[2])), ANYTHING), max_size=4), ANYTHING)
def test_wrong_types_anywhere_in_a_transcript_do_no_harm(lines: list[dict[str, Any]], odd: Any) -> None:
    """There is a chat in any case."""
    more = [line("user", 1, None, odd), line("assistant", 2, 1, [odd, {"type": "tool_use", "id": odd, "name": odd}])]
    results = line("user", 3, 2, [{"type": "tool_result", "tool_use_id": odd, "content": odd}])
    assert read(*lines, *more, results, {"type": "user", "message": odd}).problem is None


def test_transcripts_lie_in_the_folders_of_projects(home: Home, tmp_path: Path) -> None:
    """Those of helpers are left out; the folder can be another one."""
    path = home.transcript("s", DIALOG)
    (path.parent / "agent-1.jsonl").write_bytes(b"")
    (path.parent / "memory.md").write_bytes(b"")
    own = ClaudeCode.at_home({"CLAUDE_CONFIG_DIR": str(home.folder / ".claude")}, tmp_path / "nobody")
    for source in (ClaudeCode.at_home({}, home.folder), own):
        assert [file.session_id for file in source.files()] == ["s"]
        assert source.hint("x") is None
