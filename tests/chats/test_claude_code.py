"""Transcripts of Claude Code, behind the same face."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chats.makers import START, Home, log
from chats.test_dialog import ANYTHING
from chats.test_log import Growing
from loopwatch import loopwatch, served_during
from pegboard.toolsets.chats.chats import Chats
from pegboard.toolsets.chats.claude_code import ClaudeCode, Transcript
from pegboard.toolsets.chats.reading import LineReading
from pegboard.toolsets.chats.session import Chat, ChatSession

pytestmark = pytest.mark.anyio

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
    assert ChatSession.of(chat, "s", "Claude Code", "/p", 0).last_seen == START + 9000


async def test_a_long_answer_is_activity(home: Home, chats: Chats) -> None:
    """A session that still runs is newer than one that was begun later, and has ended."""
    working = [
        line("assistant", uuid, uuid - 1, text("…"), timestamp=f"2026-01-01T00:{uuid}:00Z") for uuid in range(10, 50)
    ]
    home.transcript("runs", [line("user", 9, None, "long"), *working], at=START / 1000 + 49 * 60)
    later = line("user", 1, None, "short", timestamp="2026-01-01T00:20:00Z")
    home.transcript("ended", [later], at=START / 1000 + 20 * 60)
    newest = await chats.newest()
    assert newest is not None
    assert newest.session_id == "runs"


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


SYSTEM = {"type": "system", "subtype": "turn_duration"}
ANSWERED = line("assistant", 2, 1, text("first"))


@pytest.mark.parametrize(
    ("lines", "requests"),
    [
        # The first request, asked anew: neither follows anything.
        ([line("user", 1, None, "wrong"), ANSWERED, line("user", 3, None, "right")], ["right"]),
        (
            [{**SYSTEM, "uuid": "0", "parentUuid": None}, line("user", 1, 0, "wrong"), line("user", 3, 0, "right")],
            ["right"],
        ),
        # The request that was taken back followed a line of the program's own.
        (
            [
                *(line("user", 1, None, "one"), ANSWERED, {**SYSTEM, "uuid": "3", "parentUuid": "2"}),
                *(line("user", 4, 3, "wrong"), line("assistant", 5, 4, text("hm")), line("user", 6, 2, "right")),
            ],
            ["one", "right"],
        ),
        # Summed up in between: what follows the summary follows the dialog.
        (
            [
                *(line("user", 1, None, "one"), ANSWERED),
                {**SYSTEM, "subtype": "compact_boundary", "uuid": "3", "parentUuid": None, "logicalParentUuid": "2"},
                line("user", 4, 3, "This session is being continued", isCompactSummary=True),
                line("user", 5, 4, "two"),
            ],
            ["one", "two"],
        ),
        (
            [
                *(line("user", 1, None, "one"), ANSWERED),
                *(line("user", 4, None, "This session is", isCompactSummary=True), line("user", 5, 4, "two")),
            ],
            ["one", "two"],
        ),
        # Taken up again: the same lines once more.
        ([line("user", 1, None, "one"), ANSWERED, line("user", 1, None, "one"), ANSWERED], ["one"]),
        # It follows a line that nobody has.
        ([line("user", 1, None, "one"), line("user", 7, 6, "two")], ["one", "two"]),
    ],
)
def test_what_was_taken_back_is_told_by_what_follows_what(lines: list[dict[str, Any]], requests: list[str]) -> None:
    """The dialog is what leads to its last line."""
    assert [each.text for each in read(*lines).requests] == requests


@pytest.mark.parametrize(
    ("content", "request_text"),
    [
        ("Why is <command-name>foo</command-name> in my XML?", "Why is <command-name>foo</command-name> in my XML?"),
        ("<command-message>x</command-message>\n<command-name>/x</command-name>", "/x"),
        ("[Request interrupted by user] is in my log?", "[Request interrupted by user] is in my log?"),
        ([{"type": "image", "source": {}}], "[image]"),
        ([{"type": "document"}, {"type": "image"}, {"type": "tool_result"}], "[document] [image]"),
        ([*text("What is this?"), {"type": "image"}], "What is this?"),
    ],
)
def test_a_request_is_what_was_typed_or_shown(content: Any, request_text: str) -> None:
    """Words that look like the program's own are the user's if there are others around them."""
    (found,) = read(line("user", 1, None, content), line("assistant", 2, 1, text("So."))).requests
    assert (found.text, found.answer) == (request_text, "So.")


def test_an_answer_of_which_nobody_says_that_it_stopped() -> None:
    """It has when words came last, or when something else was asked; not while a tool or the model has the word."""
    call = line("assistant", 2, 1, [{"type": "tool_use", "id": "t", "name": "Bash"}])
    result = line("user", 3, 2, [{"type": "tool_result", "tool_use_id": "t", "content": "x"}])
    lines = (
        line("user", 1, None, "one"),
        call,
        result,
        line("assistant", 4, 3, text("Done.")),
        line("user", 5, 4, "?"),
    )
    seen = [read(*lines[:count]).requests[0].status for count in range(1, 6)]
    assert seen == ["pending", "in_progress", "in_progress", "completed", "completed"]
    assert read(lines[0], call, line("user", 5, 2, "?")).requests[0].status == "completed"


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


def test_a_line_that_is_too_long_is_skipped_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never parsed as a whole, hides no other line, and is counted once, however often the file is read on."""
    monkeypatch.setattr("pegboard.toolsets.chats.reading.LONGEST_LINE", 1000)
    one, long, two, three = (
        log(line("user", at, at - 1 or None, words)) for at, words in enumerate(("one", "x" * 5000, "two", "three"), 1)
    )
    reading = LineReading(Transcript())
    chat = reading.read(io.BytesIO(one + long + two + long[:3000]))
    assert [each.text for each in chat.requests] == ["one", "two"]
    assert chat.problem == "lines of more than 1,000 bytes that were skipped: 1"
    whole = io.BytesIO(one + long + two + long + three)
    assert reading.goes_on(whole, len(whole.getvalue()))
    chat = reading.read(whole)
    assert [each.text for each in chat.requests] == ["one", "two", "three"]
    assert chat.problem == "lines of more than 1,000 bytes that were skipped: 2"
    broken = LineReading(Transcript()).read(io.BytesIO(one + b"{no\n" + long)).problem
    assert broken is not None
    assert "is broken" in broken
    assert "skipped: 1" in broken


def test_a_broken_line_of_a_transcript_hides_no_other() -> None:
    """Each line stands for itself; the damage is reported unless it is the last line."""
    good = log(line("user", 1, None, "one")), log(line("user", 3, 1, "two"))
    chat = LineReading(Transcript()).read(io.BytesIO(good[0] + b'{"half\n' + good[1]))
    assert [each.text for each in chat.requests] == ["one", "two"]
    assert chat.problem is not None
    assert LineReading(Transcript()).read(io.BytesIO(good[0] + b'{"half')).problem is None


def test_a_transcript_that_grows_while_it_is_read_loses_no_request() -> None:
    """Not even where each line stands for itself, and a half one would be passed over."""
    whole = log(line("user", 1, None, "one"), line("user", 2, 1, "two"), line("user", 3, 2, "three"))
    for cut in range(1, len(whole), 7):
        reading = LineReading(Transcript())
        assert reading.read(Growing(whole[:cut], whole[cut:])).problem is None
        chat = reading.read(io.BytesIO(whole))
        assert ([each.text for each in chat.requests], chat.problem) == (["one", "two", "three"], None)


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


async def test_hostile_transcripts_hold_up_nobody(home: Home, chats: Chats) -> None:
    """Marks that never end, and a pasted document, are read and searched beside the event loop."""
    hostile = ("<system-reminder>" * 20_000, "<command-name>" + " " * 100_000, "till " * 200_000)
    for number, words in enumerate(hostile):
        home.transcript(f"s{number}", [line("user", 1, None, words)])
    for search in ("till", "nothing like it"):
        with loopwatch() as watch:
            assert await served_during(chats.search(search), lambda: asyncio.sleep(0))
        watch.check()
    assert (await chats.search("till")).total == 1


def test_reminders_are_taken_out_and_one_without_an_end_stays() -> None:
    """What the program added ends with its own mark."""
    words = "a<system-reminder>x</system-reminder>b<system-reminder>y</system-reminder>c<system-reminder>d"
    assert read(line("user", 1, None, words)).requests[0].text == "abc<system-reminder>d"
