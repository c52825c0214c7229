"""A chat as it was read, and the record of it that the tools work with. No editor's format reaches beyond these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pegboard.toolsets.chats.fields import a_list, a_moment, a_name, a_text, an_object

Status = Literal["pending", "in_progress", "completed", "failed", "canceled"]
STATUSES: tuple[Status, ...] = ("pending", "in_progress", "completed", "failed", "canceled")
PREVIEW = 80


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool that was used on the way to an answer."""

    name: str
    message: str = ""
    input: Any = None
    output: str = ""
    failed: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Only what there is to say."""
        told: dict[str, Any] = {"name": self.name}
        if self.message:
            told["message"] = self.message
        if self.input is not None:
            told["input"] = self.input
        if self.output:
            told["output"] = self.output
        if self.failed:
            told["failed"] = True
        return told


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What somebody asked, and what came back."""

    text: str
    timestamp: int | None = None
    request_id: str | None = None
    answer: str = ""
    tool_calls: Sequence[ToolUse] = ()
    edited: Sequence[str] = ()
    error: str | None = None
    status: Status = "completed"
    agent_id: str | None = None
    model_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)

    @classmethod
    def from_dict(cls, kept: Mapping[str, Any]) -> ChatRequest:
        """As it was kept."""
        return cls(
            text=a_text(kept.get("text")),
            timestamp=a_moment(kept.get("timestamp")),
            request_id=a_name(kept.get("request_id")),
            answer=a_text(kept.get("answer")),
            tool_calls=tuple(
                ToolUse(
                    a_text(call.get("name")),
                    a_text(call.get("message")),
                    call.get("input"),
                    a_text(call.get("output")),
                    call.get("failed") is True,
                )
                for call in map(an_object, a_list(kept.get("tool_calls")))
            ),
            edited=tuple(map(a_text, a_list(kept.get("edited")))),
            error=a_name(kept.get("error")),
            status=status_of(kept.get("status")),
            agent_id=a_name(kept.get("agent_id")),
            model_id=a_name(kept.get("model_id")),
        )


@dataclass(frozen=True, slots=True)
class Chat:
    """Everything of one session, as its file tells it; requests that were undone are not among these."""

    requests: Sequence[ChatRequest] = ()
    session_id: str | None = None
    title: str | None = None
    created: int | None = None
    active: int | None = None
    # When the last line was written, where each tells its time: an answer that takes hours is activity all the while.
    last_line: int | None = None
    folders: Sequence[str] = ()
    # What is wrong with the file, if some of it could not be read.
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ChatSession:
    """The record of a session: what is known of it without opening its file."""

    session_id: str
    source: str
    first_seen: int | None = None
    last_seen: int | None = None
    requests_count: int = 0
    status: Status = "pending"
    first_request_preview: str | None = None
    agent_id: str | None = None
    model_id: str | None = None
    # `None`: nothing but its id is known, or its file cannot be read.
    chat_json_path: str | None = None
    title: str | None = None
    folders: Sequence[str] = ()
    problem: str | None = None
    # When its file was written.
    written: int | None = None

    @classmethod
    def of(cls, chat: Chat, session_id: str, source: str, path: str, changed: int) -> ChatSession:
        """The record of a chat that was read from a file of that time."""
        last = chat.requests[-1] if chat.requests else None
        text = chat.requests[0].text if chat.requests else ""
        stamps = [request.timestamp for request in chat.requests if request.timestamp is not None]
        first_seen = chat.created or (stamps[0] if stamps else None) or chat.active or changed
        last_seen = (last.timestamp if last else None) or chat.active or (stamps[-1] if stamps else first_seen)
        return cls(
            session_id=session_id,
            source=source,
            first_seen=first_seen,
            last_seen=max(last_seen, chat.last_line or 0),
            written=changed,
            requests_count=len(chat.requests),
            status=last.status if last else "pending",
            first_request_preview=text.strip()[:PREVIEW] or None,
            agent_id=_last([request.agent_id for request in chat.requests]),
            model_id=_last([request.model_id for request in chat.requests]),
            chat_json_path=path,
            title=chat.title,
            folders=tuple(chat.folders),
            problem=chat.problem,
        )

    @property
    def workspace(self) -> str | None:
        """The folder that it belongs to, or the first of them."""
        return self.folders[0] if self.folders else None

    @property
    def activity(self) -> int:
        """When something last happened in it; nothing did after its file was written, whatever a clock said then."""
        last_seen = self.last_seen or 0
        return last_seen if self.written is None else min(last_seen, self.written)

    def to_dict(self) -> dict[str, Any]:
        """The record as the tools tell it."""
        return {
            "sessionId": self.session_id,
            "title": self.title or self.first_request_preview,
            "workspace": self.workspace,
            "source": self.source,
            "firstSeen": self.first_seen,
            "lastSeen": self.last_seen,
            "requestsCount": self.requests_count,
            "status": self.status,
            "firstRequestPreview": self.first_request_preview,
            "agentId": self.agent_id,
            "modelId": self.model_id,
            "chatJsonPath": self.chat_json_path,
        }

    def to_record(self) -> dict[str, Any]:
        """As it is kept."""
        return asdict(self)

    @classmethod
    def from_record(cls, kept: Mapping[str, Any], path: str | None = None) -> ChatSession:
        """As it was kept, with the path of its file: JSON cannot say every name that a file may have."""
        count = kept.get("requests_count")
        kept_path = a_name(kept.get("chat_json_path"))
        return cls(
            session_id=a_text(kept.get("session_id")),
            source=a_text(kept.get("source")),
            first_seen=a_moment(kept.get("first_seen")),
            last_seen=a_moment(kept.get("last_seen")),
            written=a_moment(kept.get("written")),
            requests_count=count if isinstance(count, int) else 0,
            status=status_of(kept.get("status")),
            first_request_preview=a_name(kept.get("first_request_preview")),
            agent_id=a_name(kept.get("agent_id")),
            model_id=a_name(kept.get("model_id")),
            chat_json_path=kept_path if kept_path is None or path is None else path,
            title=a_name(kept.get("title")),
            folders=tuple(map(a_text, a_list(kept.get("folders")))),
            problem=a_name(kept.get("problem")),
        )


def status_of(value: object) -> Status:
    """One of the states there are."""
    for status in STATUSES:
        if status == value:
            return status
    return "pending"


def _last(values: Sequence[str | None]) -> str | None:
    return next((value for value in reversed(values) if value is not None), None)
