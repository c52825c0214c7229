"""The spec tools: what an agent may read of an OpenSpec folder, and have checked."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from pegboard.tool import answers, takes
from pegboard.toolsets.answer_size import json_size
from pegboard.toolsets.page import validate_offset, validate_page
from pegboard.toolsets.schemas import BOOLEAN, INTEGER, STRING, choice, hints, number, switch, text
from pegboard.toolsets.tasks import budget
from pegboard.toolsets.tasks import schemas as say
from pegboard.toolsets.tasks.check import MAX_LIMIT
from pegboard.toolsets.tasks.specs import KINDS, change_rows, show, spec_rows
from pegboard.toolsets.tasks.task_tool import TaskTool
from pegboard.toolsets.tasks.validation import Validation

_MOST_FILES = 100


class SpecList(TaskTool):
    """What is specified."""

    name = "spec_list"
    description = "List the specs and the open changes of the OpenSpec folder, with titles and how far each change is."
    keywords = ("specifications", "proposals", "requirements", "overview", "capabilities")
    input_schema = takes(
        [],
        path=say.PATH,
        kind=choice("Only specs, or only changes", KINDS, "change"),
        limit=number("How many at most", 1, MAX_LIMIT, 100, 20),
        offset=say.OFFSET,
    )
    output_schema = answers(specs=say.ROWS, changes=say.ROWS, total=INTEGER, hasMore=BOOLEAN)
    annotations = hints("List specs and changes", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        limit, offset = validate_page(arguments["limit"], arguments["offset"], MAX_LIMIT)
        kind = arguments.get("kind")
        folder, _, state = await self._registry.contents(arguments.get("path"))
        specs = [] if kind == "change" else await asyncio.to_thread(spec_rows, folder)
        changes = [] if kind == "spec" else await asyncio.to_thread(change_rows, folder, state)
        rows = [*specs, *changes]
        fit = budget.first_rows(rows[offset : offset + limit])
        end = offset + len(fit)
        parted = max(0, min(len(fit), len(specs) - offset))
        answer = {"specs": fit[:parted], "changes": fit[parted:], "total": len(rows), "hasMore": end < len(rows)}
        return {**answer, "message": f"Go on with offset {end}."} if end < len(rows) else answer


class SpecShow(TaskTool):
    """Read one."""

    name = "spec_show"
    description = (
        "Read a spec or a change of the OpenSpec folder: its spec.md or proposal.md, or with file its tasks.md, "
        "design.md and others."
    )
    keywords = ("read specification", "open proposal", "requirements", "design")
    input_schema = takes(
        ["name"],
        path=say.PATH,
        name=text("The spec's name or the change's id", "add-login", minLength=1),
        kind=choice("Which of the two, where a spec and a change have the same name", KINDS, "spec"),
        file=text("Which file of it", "design.md", "specs/auth/spec.md", minLength=1),
        offset=number("From which character on, where an answer was cut", 0, None, 0, 24000),
    )
    output_schema = answers(
        kind={"enum": list(KINDS)},
        name=STRING,
        file=STRING,
        text=STRING,
        files=say.ROWS,
        characters=INTEGER,
    )
    annotations = hints("Read a spec or a change", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        offset = validate_offset(arguments["offset"])
        folder, _, _ = await self._registry.contents(arguments.get("path"))
        found = await asyncio.to_thread(show, folder, arguments["name"], arguments.get("kind"), arguments.get("file"))
        files = [{"file": name, "bytes": size} for name, size in found.files[:_MOST_FILES]]
        text, end = budget.cut(found.text, offset, json_size(files))
        answer: dict[str, Any] = {
            "kind": found.kind,
            "name": found.name,
            "file": found.file,
            "text": text,
            "files": files,
            "characters": len(found.text),
        }
        if end < len(found.text):
            told = f"Characters {offset} to {end} of {len(found.text)}: read on with offset {end}."
            answer |= {"next_offset": end, "message": told}
        return answer


class SpecValidate(TaskTool):
    """Check."""

    name = "spec_validate"
    description = (
        "Check specs, changes and tasks of the OpenSpec folder for mistakes: requirements without scenario, SHALL or "
        "MUST, wrong deltas, dependencies that do not exist or need each other. Each with file, line and what to do."
    )
    keywords = ("lint", "verify", "check specification", "errors", "broken")
    input_schema = takes(
        [],
        path=say.PATH,
        name=text("Only this spec or change", "add-login", minLength=1),
        strict=switch("Whether warnings count, too"),
        offset=say.OFFSET,
    )
    output_schema = answers(
        valid=BOOLEAN,
        errors=INTEGER,
        warnings=INTEGER,
        infos=INTEGER,
        findings=say.FINDINGS,
        hasMore=BOOLEAN,
    )
    annotations = hints("Check specs and changes", reads=True)

    async def call(self, arguments: Mapping[str, Any]) -> Any:
        offset = validate_offset(arguments["offset"])
        folder, contents, state = await self._registry.contents(arguments.get("path"))
        validation = Validation(folder, contents, state)
        found = await asyncio.to_thread(validation.findings, arguments.get("name"))
        counts = Counter(finding.severity for finding in found)
        fit = budget.first_rows([finding.to_dict() for finding in found[offset : offset + MAX_LIMIT]])
        end = offset + len(fit)
        answer: dict[str, Any] = {
            "valid": not counts["error"] and not (arguments["strict"] and counts["warning"]),
            "errors": counts["error"],
            "warnings": counts["warning"],
            "infos": counts["info"],
            "findings": fit,
            "hasMore": end < len(found),
        }
        return {**answer, "message": f"Go on with offset {end}."} if end < len(found) else answer


SPEC_TOOLS = (SpecList, SpecShow, SpecValidate)
