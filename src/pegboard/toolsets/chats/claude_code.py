"""Claude Code's transcripts: a folder for each project, a file of lines for each session."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pegboard import exactjson
from pegboard.exactjson import as_object
from pegboard.toolsets.chats.fields import a_list, a_moment, a_name, a_text, an_object, parsed
from pegboard.toolsets.chats.reading import BrokenLine, LineReading, Reading
from pegboard.toolsets.chats.session import Chat, Request, Session, Status, ToolCall
from pegboard.toolsets.chats.source import ChatFile, entries, stamp_of

_MOST_OUTPUT = 4000
_INTERRUPTED = "[Request interrupted by user"
# What the program itself puts down in the user's name.
_NOISE = ("<local-command-", "<bash-stdout>", "<bash-stderr>", "<task-notification>", "Caveat: The messages below")
_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_ARGUMENTS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)


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
            for entry in entries(project.path):
                stem, dot, suffix = entry.name.rpartition(".")
                if dot and suffix == "jsonl" and stem and not stem.startswith("agent-") and (stamp := stamp_of(entry)):
                    yield ChatFile(entry.path, self, stamp, stem)

    def reading(self, file: ChatFile) -> Reading:
        """Lines are added at the end."""
        del file
        return LineReading(Transcript())

    def folders(self, file: ChatFile) -> Sequence[str]:
        """Its lines tell."""
        del file
        return ()

    def hint(self, session_id: str) -> Session | None:
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
    parent: str | None
    # The request that this one follows.
    after: _Turn | None
    text: str
    timestamp: int | None
    answer: list[str] = field(default_factory=list[str])
    calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    model: str | None = None
    status: Status = "pending"
    error: str | None = None
    undone: bool = False


class Transcript:
    """The lines of one session. Each stands for itself, and names the line it follows."""

    chained = False

    def __init__(self) -> None:
        self._turns: list[_Turn] = []
        # The request that each line belongs to, by the line's own id.
        self._owners: dict[str, _Turn] = {}
        # The last request behind a line, by that line's id.
        self._following: dict[str, _Turn] = {}
        self._title: str | None = None
        self._summary: str | None = None
        self._folder: str | None = None
        self._first: int | None = None
        self._last: int | None = None

    def take(self, line: bytes) -> None:
        """One line."""
        try:
            entry = as_object(parsed(line))
        except exactjson.NotJson:
            raise BrokenLine("it is no JSON") from None
        if entry is None:
            raise BrokenLine("it is no JSON object")
        self._entry(entry)

    def chat(self) -> Chat:
        """Every request that was not taken back."""
        return Chat(
            requests=[_request(turn) for turn in _standing(self._turns)],
            title=self._title or self._summary,
            created=self._first,
            active=self._last,
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
        self._folder = self._folder or a_name(entry.get("cwd"))
        owner = self._owners.get(a_text(entry.get("parentUuid"))) or (self._turns[-1] if self._turns else None)
        if kind == "user":
            owner = self._user(entry, owner)
        elif kind == "assistant" and owner is not None:
            _answer(entry, owner)
        if kind in {"user", "assistant"} and (moment := a_moment(entry.get("timestamp"))) is not None:
            self._first = self._first or moment
            self._last = moment
        if owner is not None and (uuid := a_name(entry.get("uuid"))):
            self._owners[uuid] = owner

    def _user(self, entry: dict[str, Any], owner: _Turn | None) -> _Turn | None:
        content = an_object(entry.get("message")).get("content")
        if owner is not None:
            _results(a_list(content), owner)
        if entry.get("isMeta") is True or entry.get("isCompactSummary") is True:
            return owner
        text = _typed(content)
        if text.startswith(_INTERRUPTED):
            if owner is not None:
                owner.status = "canceled"
            return owner
        if not text or text.startswith(_NOISE):
            return owner
        turn = _Turn(
            uuid=a_name(entry.get("uuid")),
            parent=a_name(entry.get("parentUuid")),
            after=owner,
            text=text,
            timestamp=a_moment(entry.get("timestamp")),
        )
        if turn.parent is not None:
            # Where two follow the same line, somebody went back to it and asked something else.
            if (earlier := self._following.get(turn.parent)) is not None:
                earlier.undone = True
            self._following[turn.parent] = turn
        self._turns.append(turn)
        return turn


def _standing(turns: Sequence[_Turn]) -> Iterator[_Turn]:
    """Those that were not taken back, and follow none that was."""
    gone: set[int] = set()
    for turn in turns:
        if turn.undone or (turn.after is not None and id(turn.after) in gone):
            gone.add(id(turn))
        else:
            yield turn


def _typed(content: object) -> str:
    """What the user typed: a command as it was typed, and without what the program adds."""
    if isinstance(content, str):
        text = content
    else:
        blocks = [an_object(block) for block in a_list(content)]
        text = "\n".join(a_text(block.get("text")) for block in blocks if block.get("type") == "text")
    if (command := _COMMAND.search(text)) is not None:
        given = _ARGUMENTS.search(text)
        return f"{command.group(1)} {given.group(1) if given else ''}".strip()
    return _REMINDER.sub("", text).strip() if "<system-reminder>" in text else text.strip()


def _answer(entry: dict[str, Any], turn: _Turn) -> None:
    message = an_object(entry.get("message"))
    content = message.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else a_list(content)
    for block in map(an_object, blocks):
        if block.get("type") == "text":
            turn.answer.append(a_text(block.get("text")))
        elif block.get("type") == "tool_use":
            key = a_name(block.get("id")) or f"call {len(turn.calls)}"
            turn.calls[key] = _Call(a_text(block.get("name")) or "tool", block.get("input"))
    if entry.get("isApiErrorMessage") is True:
        turn.status, turn.error = "failed", " ".join(turn.answer[-1:]) or None
        return
    turn.model = a_name(message.get("model")) or turn.model
    turn.status = "completed" if a_text(message.get("stop_reason")) in {"end_turn", "stop_sequence"} else "in_progress"


def _results(blocks: Sequence[Any], turn: _Turn) -> None:
    for block in map(an_object, blocks):
        call = turn.calls.get(a_text(block.get("tool_use_id")))
        if block.get("type") == "tool_result" and call is not None:
            content = block.get("content")
            texts = [content] if isinstance(content, str) else [an_object(p).get("text") for p in a_list(content)]
            call.output = "\n".join(map(a_text, texts)).strip()[:_MOST_OUTPUT]
            call.failed = block.get("is_error") is True


def _request(turn: _Turn) -> Request:
    answered = any(text.strip() for text in turn.answer)
    return Request(
        text=turn.text,
        timestamp=turn.timestamp,
        request_id=turn.uuid,
        answer="\n\n".join(text.strip() for text in turn.answer if text.strip()),
        tool_calls=[ToolCall(call.name, "", call.input, call.output, call.failed) for call in turn.calls.values()],
        error=turn.error,
        # Older versions never said why an answer stopped.
        status="completed" if turn.status == "in_progress" and answered and not turn.calls else turn.status,
        agent_id="claude-code",
        model_id=turn.model,
    )
