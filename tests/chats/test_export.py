"""A session as Markdown."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chats.makers import START
from pegboard.toolsets.chats.export import markdown
from pegboard.toolsets.chats.session import ChatRequest, ChatSession, ToolUse

SESSION = ChatSession(
    "abc", "Code", START, START + 60_000, 2, "completed", "Fix it", None, "gpt", "/p", "My\ntitle", ("/home/ada",)
)


def test_a_session_reads_as_a_page() -> None:
    """Its facts, then each request with what was done and what was answered."""
    requests = [
        ChatRequest(
            "Fix it\nplease",
            START,
            answer="Done:\n```py\nx = 1",
            edited=["/a.py"],
            tool_calls=[ToolUse("run", "Ran `ls`", {"c": "ls"})],
        ),
        ChatRequest("", answer="", status="failed", error="off\nline"),
    ]
    assert markdown(SESSION, requests) == (
        "# My title\n\n- Session: abc\n- From: Code\n- Folder: /home/ada\n- Begun: 2026-01-01T00:00:00Z\n"
        "- Last activity: 2026-01-01T00:01:00Z\n- Model: gpt\n- Requests: 2\n\n"
        "## 1. Request (2026-01-01T00:00:00Z)\n\n> Fix it\n> please\n\n"
        '- `run`: Ran `ls`\n  `{"c":"ls"}`\n- edited `/a.py`\n\nDone:\n```py\nx = 1\n```\n\n'
        "## 2. Request\n\n>\n\n*failed: off line*\n"
    )


def test_a_damaged_session_says_so() -> None:
    """Whoever reads it has to know that there was more."""
    assert "- Problem: line 3 is broken\n" in markdown(replace(SESSION, problem="line 3\nis broken"), [])


@given(st.text(), st.text(), st.recursive(st.none() | st.text(), st.lists))
def test_any_text_can_be_exported(text: str, answer: str, given_input: Any) -> None:
    """And no answer hides the request behind it."""
    calls = [ToolUse(text, answer, given_input)]
    page = markdown(SESSION, [ChatRequest(text, answer=answer, tool_calls=calls), ChatRequest("the last")])
    assert page.endswith("## 2. Request\n\n> the last\n")
