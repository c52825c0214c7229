"""Which members of params could be taken for another by a server that is less exact than the specification."""

from __future__ import annotations

from typing import Any

import mcp_types
import pytest
from pydantic import BaseModel

from pegboard.protocol.members import LONGEST_NAME, MOST_MEMBERS, members_problem, without_look_alikes

PARAMS: dict[str, list[type[BaseModel]]] = {
    "completion/complete": [mcp_types.CompleteRequestParams],
    "elicitation/create": [mcp_types.ElicitRequestFormParams, mcp_types.ElicitRequestURLParams],
    "initialize": [mcp_types.InitializeRequestParams],
    "logging/setLevel": [mcp_types.SetLevelRequestParams],
    "notifications/cancelled": [mcp_types.CancelledNotificationParams],
    "notifications/elicitation/complete": [mcp_types.ElicitCompleteNotificationParams],
    "notifications/message": [mcp_types.LoggingMessageNotificationParams],
    "notifications/progress": [mcp_types.ProgressNotificationParams],
    "notifications/resources/updated": [mcp_types.ResourceUpdatedNotificationParams],
    "notifications/tasks/status": [mcp_types.TaskStatusNotificationParams],
    "prompts/get": [mcp_types.GetPromptRequestParams],
    "prompts/list": [mcp_types.PaginatedRequestParams],
    "resources/read": [mcp_types.ReadResourceRequestParams],
    "resources/subscribe": [mcp_types.SubscribeRequestParams],
    "resources/unsubscribe": [mcp_types.UnsubscribeRequestParams],
    "sampling/createMessage": [mcp_types.CreateMessageRequestParams],
    "subscriptions/listen": [mcp_types.SubscriptionsListenRequestParams],
    "tasks/cancel": [mcp_types.CancelTaskRequestParams],
    "tasks/get": [mcp_types.GetTaskRequestParams],
    "tasks/result": [mcp_types.GetTaskPayloadRequestParams],
    "tools/call": [mcp_types.CallToolRequestParams],
}
OBJECTS: dict[tuple[str, str], list[type[BaseModel]]] = {
    ("completion/complete", "ref"): [mcp_types.PromptReference, mcp_types.ResourceTemplateReference],
    ("completion/complete", "argument"): [mcp_types.CompletionArgument],
    ("completion/complete", "context"): [mcp_types.CompletionContext],
    ("tools/call", "task"): [mcp_types.TaskMetadata],
}


def members(models: list[type[BaseModel]]) -> dict[str, Any]:
    """An object with every member that the SDK's models have."""
    return {field.alias or name: None for model in models for name, field in model.model_fields.items()}


@pytest.mark.parametrize("method", PARAMS)
def test_every_member_that_the_sdk_knows_is_known(method: str) -> None:
    """A version of the SDK that brings a new member makes this fail, so that nobody is refused for it."""
    given = members(PARAMS[method])
    assert members_problem(method, given) is None
    for name in given:
        assert members_problem(method, {**given, name.upper(): None}) is not None


@pytest.mark.parametrize(("method", "name"), OBJECTS)
def test_the_same_of_the_objects_inside(method: str, name: str) -> None:
    """What is said of params holds for those of its objects that say what a request is about."""
    given = members(OBJECTS[method, name])
    assert members_problem(method, {name: given}) is None
    for inner in given:
        assert f"{name} of {method}" in (members_problem(method, {name: {**given, inner.upper(): 1}}) or "")


LOOK_ALIKES = ["Name", "NAME", "na\u200bme", "name\0", " name", "name_", "na\u0301me", "name\u0345", "\uff4eame"]


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_member_that_resembles_one_of_the_specification_is_refused(name: str) -> None:
    """With it or without it; the refusal names both, so that what cannot be seen can be found."""
    for params in ({"name": "safe", name: "other"}, {name: "other"}, {name: "other", "name": "safe"}):
        problem = members_problem("tools/call", params) or ""
        assert f"{name!a} resembles 'name'" in problem


@pytest.mark.parametrize("name", ["TaskId", "task_id", "ta\u017fkId", "tas\u212aId", "task\u0131d", "task-id"])
def test_so_is_one_as_go_or_protocol_buffers_would_read_it(name: str) -> None:
    """They fold the long s and the Kelvin sign, take underscores, or compare upper case."""
    assert members_problem("tasks/get", {name: "theirs"}) is not None


def test_two_that_resemble_each_other_are_refused_whatever_they_are() -> None:
    """Nobody can tell which of them a server would take."""
    assert "'extra' and 'Extra'" in (members_problem("tools/call", {"name": "a", "extra": 1, "Extra": 2}) or "")


@pytest.mark.parametrize(
    "params",
    [
        {"name": "a", "extra": 1, "uri": 2, "x-y": {"Name": 1, "name": 2}},
        {"name": "a", "arguments": {"name": 1, "Name": 2, "\u017f": 3, "s": 4}},
        {"name": "a", "_meta": {"com.example/A": 1, "com.example/a": 2}},
        {"name": "a", "$": 1, "@": 2, "": 3, "\u65e5": 4},
        {"name": "a", "context": {"Arguments": 1}},
        {"name": "a", "task": None, "_meta": "none"},
    ],
)
def test_what_resembles_nothing_goes_on(params: dict[str, Any]) -> None:
    """What Pegboard does not know is passed on, and arguments are the tool's own business."""
    assert members_problem("tools/call", params) is None


def test_the_params_of_a_method_that_nobody_knows_are_its_own_business() -> None:
    """Except what Pegboard itself reads in them, and takes out."""
    assert members_problem("toy/shout", {"name": 1, "Name": 2, "task": {"ttl": 1, "TTL": 2}}) is None
    assert members_problem("toy/shout", {"_meta": {"ProgressToken": 1}}) is not None


@pytest.mark.parametrize(
    "key", ["ProgressToken", "progress_token", "Pegboard/Server", "io.modelcontextprotocol/clientinfo"]
)
def test_no_key_of_this_hop_goes_on_in_disguise(key: str) -> None:
    """The next hop writes its own."""
    assert f"_meta: {key!r} resembles" in (members_problem("tools/call", {"name": "a", "_meta": {key: 1}}) or "")


def test_there_is_an_end_to_what_is_looked_at() -> None:
    """Many members, or long names, would take long to be folded."""
    assert members_problem("tools/call", {f"x{at}y": at for at in range(MOST_MEMBERS)}) is None
    assert members_problem("tools/call", {f"x{at}y": at for at in range(MOST_MEMBERS + 1)}) is not None
    assert members_problem("tools/call", {"\u0f73" * LONGEST_NAME: 1}) is None
    assert members_problem("tools/call", {"x" * (LONGEST_NAME + 1): 1}) is not None


def test_look_alikes_of_a_member_can_be_left_out() -> None:
    """The member itself and everything else stay, but for names that are too long to be folded."""
    longest = "m" * LONGEST_NAME
    given = {"message": 1, "Message": 2, "mess\u200bage": 3, "messages": 4, longest: 5}
    hidden = {"m" + "\u200b" * LONGEST_NAME + "essage": 6}
    assert without_look_alikes({**given, **hidden}, "message") == {"message": 1, "messages": 4, longest: 5}
