"""Servers of a registry as rows for people and programs: the same for REST and for the commands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pegboard.mcp_registry.proposal import Answers, Proposal, command_line, problem_of, propose, recipes_of
from pegboard.mcp_registry.question import Question, WrongAnswer
from pegboard.mcp_registry.recipe import CannotRun, Recipe
from pegboard.mcp_registry.registry import Found, FoundServer
from pegboard.mcp_registry.server_json import RegistryServer
from pegboard.names import fold_server_name


def server_name(server: RegistryServer) -> str:
    """What a server is called here, unless somebody chooses otherwise."""
    return fold_server_name(server.name.rpartition("/")[2])


def page_row(found: Found, limit: int, offset: int) -> dict[str, Any]:
    """Some of what a search found."""
    page = found.servers[offset : offset + limit]
    following = offset + limit
    return {
        "servers": [server_row(server) for server in page],
        "total": len(found.servers),
        "nextCursor": str(following) if following < len(found.servers) else None,
        "known": found.known,
        "complete": found.is_complete,
        "checked": None if found.checked is None else found.checked.isoformat(timespec="seconds"),
        "notes": found.notes,
    }


def server_row(server: RegistryServer) -> dict[str, Any]:
    """One server in brief."""
    return {
        "name": server.name,
        "publisher": server.publisher,
        "title": server.title,
        "description": server.description,
        "version": server.version,
        "status": server.status,
        "statusMessage": server.status_message,
        "updatedAt": server.updated_at,
        "website": server.website,
        "repository": server.repository,
        "runs": [_run_row(recipe, at, server_name(server)) for at, recipe in enumerate(recipes_of(server), 1)],
    }


def detail_row(found: FoundServer) -> dict[str, Any]:
    """One server with the entry that each way to run it would become."""
    name = server_name(found.server)
    choices = [_choice_row(recipe, at, name) for at, recipe in enumerate(recipes_of(found.server), 1)]
    row = {key: value for key, value in server_row(found.server).items() if key != "runs"}
    return {**row, "serverName": name, "choices": choices, "record": found.record, "notes": found.notes}


def _run_row(recipe: Recipe, use: int, name: str) -> dict[str, Any]:
    problem = problem_of(recipe)
    line = "" if problem is not None else command_line(propose(recipe, name, {}).entry)
    return {"use": use, "kind": recipe.kind, "about": recipe.about, "command": line, "problem": problem}


def proposal_row(found: FoundServer, use: int, answers: Answers) -> dict[str, Any]:
    """One way to run a server, with answers to what it wants. Raises `WrongAnswer`, `UnusableText`, `CannotRun`."""
    recipes = recipes_of(found.server)
    if not 1 <= use <= len(recipes):
        raise WrongAnswer(f"use must be a whole number from 1 to {len(recipes)}")
    recipe, name = recipes[use - 1], server_name(found.server)
    if (problem := problem_of(recipe)) is not None:
        raise CannotRun(problem)
    return {"use": use, **_entry_row(propose(recipe, name, answers))}


def _entry_row(proposal: Proposal) -> dict[str, Any]:
    return {
        "entry": proposal.entry,
        "command": command_line(proposal.entry),
        "variables": sorted(proposal.variables),
        "warnings": list(proposal.warnings),
    }


def _choice_row(recipe: Recipe, use: int, name: str) -> dict[str, Any]:
    problem = problem_of(recipe)
    row: dict[str, Any] = {"use": use, "kind": recipe.kind, "about": recipe.about, "problem": problem}
    if problem is not None:
        return {**row, "entry": None, "command": "", "inputs": [], "variables": [], "warnings": []}
    inputs = [question_row(question, name) for question in recipe.questions.values()]
    return {**row, **_entry_row(propose(recipe, name, {})), "inputs": inputs}


def question_row(question: Question, name: str) -> Mapping[str, Any]:
    """One value that the server wants."""
    return {
        "key": question.key,
        "description": question.description,
        "required": question.is_required,
        "secret": question.is_secret,
        "repeated": question.is_repeated,
        "default": question.default,
        "placeholder": question.placeholder,
        "choices": list(question.choices),
        "format": question.format,
        "variable": question.variable_for(name),
    }
