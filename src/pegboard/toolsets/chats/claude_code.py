"""Claude Code's transcripts: a folder for each project, a file of lines for each session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard import exactjson
from pegboard.exactjson import as_object
from pegboard.toolsets.chats.fields import a_list, a_moment, a_name, a_text, an_object, parse_json
from pegboard.toolsets.chats.folders import flatten
from pegboard.toolsets.chats.reading import BrokenLine, LineReading, Reading
from pegboard.toolsets.chats.session import Chat, ChatRequest, ChatSession, Status, ToolUse
from pegboard.toolsets.chats.source import ChatFile, entries, stamp_of

_MOST_OUTPUT = 4000
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]]*\]")
# What a request may have been instead of words.
_SHOWN = ("image", "document")
# What the program itself puts down in the user's name.
_NOISE = ("<local-command-", "<bash-stdout>", "<bash-stderr>", "<task-notification>", "Caveat: The messages below")
_REMINDER, _REMINDER_END = "<system-reminder>", "</system-reminder>"


class ClaudeCode:
    """The transcripts under `projects` of Claude Code's own folder."""

    name = "Claude Code"

    def __init__(self, folder: Path) -> None:
        self._projects = folder / "projects"

    @classmethod
    def at_home(cls, env: Mapping[str, str], home: Path) -> ClaudeCode:
        """Where Claude Code keeps them on this machine."""
        own = env.get("CLAUDE_CONFIG_DIR")
        return cls(Path(own).expanduser() if own else home / ".claude")

    def files(self) -> Iterator[ChatFile]:
        """Every session's file; those of helpers that a session called are no sessions."""
        for project in entries(str(self._projects)):
            home = flatten(project.name)
            for entry in entries(project.path):
                stem, dot, suffix = entry.name.rpartition(".")
                if dot and suffix == "jsonl" and stem and not stem.startswith("agent-") and (stamp := stamp_of(entry)):
                    yield ChatFile(entry.path, self, stamp, stem, home)

    def reading(self, file: ChatFile) -> Reading:
        """Lines are added at the end."""
        del file
        return LineReading(Transcript())

    def folders(self, file: ChatFile) -> Sequence[str] | None:
        """Its lines tell; the name of its project's folder, in which every other character is a dash, only almost."""
        del file
        return None

    def hint(self, session_id: str) -> ChatSession | None:
        """What has no file is not known."""
        del session_id
        return None


@dataclass(slots=True)
class _Call:
    name: str
    input: Any
    output: str = ""
    failed: bool = False


@dataclass(slots=True)
class _Turn:
    uuid: str | None
    # The request that this one follows.
    after: _Turn | None
    text: str
    timestamp: int | None
    answer: list[str] = field(default_factory=list[str])
    calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    model: str | None = None
    status: Status = "pending"
    error: str | None = None
    # Whether words came last, and nobody said whether there are more to come.
    open_end: bool = False


class Transcript:
    """The lines of one session. Each stands for itself, and names the line it follows."""

    chained = False

    def __init__(self) -> None:
        # The request that is asked or answered now: what does not lead to it was taken back.
        self._now: _Turn | None = None
        # The request that each line belongs to, by the line's own id; there is none before the first.
        self._owners: dict[str, _Turn | None] = {}
        self._title: str | None = None
        self._summary: str | None = None
        self._folder: str | None = None
        self._first: int | None = None
        self._last: int | None = None

    def take(self, line: bytes) -> None:
        """One line."""
        try:
            entry = as_object(parse_json(line))
        except exactjson.NotJson:
            raise BrokenLine("it is no JSON") from None
        if entry is None:
            raise BrokenLine("it is no JSON object")
        self._entry(entry)

    def chat(self) -> Chat:
        """Every request that was not taken back."""
        return Chat(
            requests=[_request(turn, followed=turn is not self._now) for turn in _leading_to(self._now)],
            title=self._title or self._summary,
            created=self._first,
            last_line=self._last,
            folders=(self._folder,) if self._folder else (),
        )

    def _entry(self, entry: dict[str, Any]) -> None:
        kind = a_text(entry.get("type"))
        if kind == "summary":
            self._summary = a_name(entry.get("summary")) or self._summary
        elif kind in {"custom-title", "ai-title"}:
            self._title = a_name(entry.get("customTitle")) or a_name(entry.get("aiTitle")) or self._title
        if entry.get("isSidechain") is True:
            return
        uuid = a_name(entry.get("uuid"))
        if uuid in self._owners:
            # A session that is taken up again may repeat what it began with.
            return
        self._folder = self._folder or a_name(entry.get("cwd"))
        owner = self._owner(entry)
        if kind == "user":
            owner = self._user(entry, owner)
        elif kind == "assistant" and owner is not None:
            _answer(entry, owner)
        if kind in {"user", "assistant"}:
            self._now = owner or self._now
            if (moment := a_moment(entry.get("timestamp"))) is not None:
                self._first = self._first or moment
                self._last = moment
        if uuid is not None:
            self._owners[uuid] = owner

    def _owner(self, entry: dict[str, Any]) -> _Turn | None:
        """The request to which the line belongs that this one follows."""
        # After a dialog was summed up, its lines follow none, but say which one they would.
        parent = a_name(entry.get("parentUuid")) or a_name(entry.get("logicalParentUuid"))
        if parent is not None and parent in self._owners:
            return self._owners[parent]
        # Nobody knows that line: it was broken, or is in another file.
        return self._now

    def _user(self, entry: dict[str, Any], owner: _Turn | None) -> _Turn | None:
        content = an_object(entry.get("message")).get("content")
        if owner is not None:
            _results(a_list(content), owner)
        if entry.get("isMeta") is True or entry.get("isCompactSummary") is True:
            return owner
        text = _user_text(content)
        if _INTERRUPTED.fullmatch(text):
            if owner is not None:
                owner.status = "canceled"
            return owner
        if not text or text.startswith(_NOISE):
            return owner
        # A request that says to follow nothing is the first one, asked anew.
        is_first = "parentUuid" in entry and entry["parentUuid"] is None
        return _Turn(
            uuid=a_name(entry.get("uuid")),
            after=None if is_first else owner,
            text=text,
            timestamp=a_moment(entry.get("timestamp")),
        )


def _leading_to(turn: _Turn | None) -> list[_Turn]:
    """The requests that lead to one, and that one."""
    found: list[_Turn] = []
    while turn is not None:
        found.append(turn)
        turn = turn.after
    return found[::-1]


def _user_text(content: object) -> str:
    """What the user typed: a command as it was typed, and without what the program adds."""
    if isinstance(content, str):
        text = content
    else:
        blocks = [an_object(block) for block in a_list(content)]
        text = "\n".join(a_text(block.get("text")) for block in blocks if block.get("type") == "text")
        if not text.strip():
            text = " ".join(f"[{block['type']}]" for block in blocks if block.get("type") in _SHOWN)
    if text.lstrip().startswith("<command-") and (command := _element(text, "command-name")) is not None:
        return f"{command} {_element(text, 'command-args') or ''}".strip()
    return _without_reminders(text).strip()


def _element(text: str, tag: str) -> str | None:
    """What stands between the first two of these tags."""
    _, opened, rest = text.partition(f"<{tag}>")
    inner, closed, _ = rest.partition(f"</{tag}>")
    return inner.strip() if opened and closed else None


def _without_reminders(text: str) -> str:
    kept: list[str] = []
    at = 0
    while (begin := text.find(_REMINDER, at)) >= 0 and (end := text.find(_REMINDER_END, begin)) >= 0:
        kept.append(text[at:begin])
        at = end + len(_REMINDER_END)
    return "".join([*kept, text[at:]])


def _answer(entry: dict[str, Any], turn: _Turn) -> None:
    message = an_object(entry.get("message"))
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else a_list(content)
    for block in map(an_object, blocks):
        if block.get("type") == "text":
            turn.answer.append(a_text(block.get("text")))
            turn.open_end = bool(turn.answer[-1].strip())
        elif block.get("type") == "tool_use":
            turn.open_end = False
            key = a_name(block.get("id")) or f"call {len(turn.calls)}"
            turn.calls[key] = _Call(a_text(block.get("name")) or "tool", block.get("input"))
    if entry.get("isApiErrorMessage") is True:
        turn.status, turn.error = "failed", " ".join(turn.answer[-1:]) or None
        return
    turn.model = a_name(message.get("model")) or turn.model
    reason = a_name(message.get("stop_reason"))
    turn.status = "completed" if reason in {"end_turn", "stop_sequence"} else "in_progress"
    turn.open_end = turn.open_end and reason is None


def _results(blocks: Sequence[Any], turn: _Turn) -> None:
    for block in map(an_object, blocks):
        call = turn.calls.get(a_text(block.get("tool_use_id")))
        if block.get("type") == "tool_result" and call is not None:
            content = block.get("content")
            texts = [content] if isinstance(content, str) else [an_object(p).get("text") for p in a_list(content)]
            call.output = "\n".join(map(a_text, texts)).strip()[:_MOST_OUTPUT]
            call.failed = block.get("is_error") is True
            turn.open_end = False


def _request(turn: _Turn, *, followed: bool) -> ChatRequest:
    # Where nobody said why an answer stopped, it has when words came last, or when somebody asked something else.
    ended = turn.status == "in_progress" and (turn.open_end or followed)
    return ChatRequest(
        text=turn.text,
        timestamp=turn.timestamp,
        request_id=turn.uuid,
        answer="\n\n".join(text.strip() for text in turn.answer if text.strip()),
        tool_calls=[ToolUse(call.name, "", call.input, call.output, call.failed) for call in turn.calls.values()],
        error=turn.error,
        status="completed" if ended else turn.status,
        agent_id="claude-code",
        model_id=turn.model,
    )
