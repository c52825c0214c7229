"""The registry: every operation on tasks, the same for MCP, REST, the command line and Python.

What files say is looked at with every call. Whatever is wrong with a call is found before anything is changed; a file
is changed before the database, so that a box which could not be ticked is never told as ticked.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path

from pegboard.result import Conflict, invalid
from pegboard.storage.database import Database, DatabaseConnection
from pegboard.toolsets.page import validate_page
from pegboard.toolsets.tasks.check import (
    MAX_COUNT,
    MAX_LIMIT,
    ambiguous,
    circle,
    not_found,
    parse_reference,
    some,
    unknown_change,
)
from pegboard.toolsets.tasks.checkbox import set_box
from pegboard.toolsets.tasks.cycles import way
from pegboard.toolsets.tasks.folder import TASKS, Contents, Folder
from pegboard.toolsets.tasks.folder_state import FolderState
from pegboard.toolsets.tasks.outcomes import Dependencies, Initialised, Next, Synced, TaskFilter, TaskPage, Updated
from pegboard.toolsets.tasks.project import Project
from pegboard.toolsets.tasks.reasons import find_blocked, remark_on, why_nothing, why_now
from pegboard.toolsets.tasks.setting import Setting
from pegboard.toolsets.tasks.state import ChangeTasks, State
from pegboard.toolsets.tasks.sync import Plan, Rules, plan_all, plan_change
from pegboard.toolsets.tasks.table import TaskRow, TaskTable
from pegboard.toolsets.tasks.task import Reference, Task, TaskId
from pegboard.toolsets.tasks.taskfile import TaskFile, digest
from pegboard.toolsets.validation import validate_choice, validate_number

OPERATIONS = ("list", "add", "remove")
_MOST_FOLDERS = 16
_TRIES = 5


class Registry:
    """The tasks of all folders, as far as one database knows them."""

    def __init__(
        self, database: Database, project: Project | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._clock = clock
        self.project = project or Project()
        self._books: OrderedDict[Path, FolderState] = OrderedDict()

    async def init(self, path: str | None = None) -> Initialised:
        """Have a registry of a folder; an empty one, if there is none yet."""
        book = await self._book(path)
        now = self._clock()

        def work(connection: DatabaseConnection) -> bool:
            table = TaskTable(connection, book.root)
            if table.exists:
                return False
            table.make(now)
            return True

        created = await self._database.write(work)
        contents = await asyncio.to_thread(book.look)
        files = [change.tasks for change in contents.changes.values() if change.tasks is not None]
        return Initialised(book.folder.root, created, len(files), sum(len(file.items) for file in files))

    async def sync(self, path: str | None = None, *, dry_run: bool = False, force: bool = False) -> Synced:
        """Bring what is known in line with the files; a dry run only tells what would be done."""
        book = await self._book(path)
        contents = await asyncio.to_thread(book.look)
        files = {name: change.tasks.items for name, change in contents.changes.items() if change.tasks is not None}
        rules = Rules(self._clock(), force)

        def look(connection: DatabaseConnection) -> Plan:
            known = TaskTable(connection, book.root).by_change()
            # What cannot be read now is not gone.
            return plan_all({name: own for name, own in known.items() if name not in contents.unread}, files, rules)

        def work(connection: DatabaseConnection) -> Plan:
            plan = look(connection)
            table = TaskTable(connection, book.root)
            table.make(rules.now)
            plan.write(table)
            table.mark_synced(rules.now)
            return plan

        plan = await (self._database.read(look) if dry_run else self._database.write(work))
        if not dry_run:
            # Whoever asks next need not wait for what is new to be read.
            book.told = await self._state(book)
        return Synced(plan.changes, plan.differences, plan.conflicts, contents.problems, dry_run)

    async def list(
        self, wanted: TaskFilter | None = None, limit: int = 50, offset: int = 0, *, path: str | None = None
    ) -> TaskPage:
        """Tasks by change and number."""
        most, start = validate_page(limit, offset, MAX_LIMIT)
        book, state = await self._report_state(path)
        wanted = wanted or TaskFilter()
        problems = book.contents.problems

        def select() -> TaskPage:
            chosen = state.all() if wanted.change is None else iter(self._change(state, wanted.change).tasks)
            found = [task for task in chosen if wanted.admits(task, state)]
            total = sum(len(change.tasks) for change in state.changes.values())
            return TaskPage(state, found, found[start : start + most], total, most, start, problems)

        # A repository may have any number of tasks, and others wait for the event loop.
        return await asyncio.to_thread(select)

    async def next(self, change: str | None = None, count: int = 1, *, path: str | None = None) -> Next:
        """The best of what can be begun now."""
        most = validate_number(count, "count", 1, MAX_COUNT)
        book, state = await self._report_state(path)
        chosen = list(state.changes.values()) if change is None else [self._change(state, change)]
        problems = book.contents.problems

        def select() -> Next:
            tasks = state.next(most, change)
            waiting = [task for each in chosen for task in find_blocked(each, state)]
            why = [why_now(task, state) for task in tasks]
            reason = why[0] if why else why_nothing(chosen, waiting, state)
            return Next(state, tasks, why, reason, len(waiting), problems)

        return await asyncio.to_thread(select)

    async def update(
        self,
        task_id: str,
        *,
        status: str | None = None,
        priority: str | None = None,
        assignee: str | None = None,
        notes: str | None = None,
        path: str | None = None,
    ) -> Updated:
        """Change a task; what is left out stays. A status ticks or empties the box in its file."""
        reference = parse_reference(task_id, "task_id")
        setting = Setting.validate(status, priority, assignee, notes, self._clock())
        book = await self._book(path)
        state = await self._state(book)
        task, change = self._resolve(state, reference, "task_id")
        wanted = task.id
        _check_still_the_same(change, task, reference, book.told)
        if status is None:
            file = change.file
        else:
            seen = change.file.items[wanted.number - 1]
            place = state.folders[wanted.change].path / TASKS
            ticked = status == "completed"
            file = await asyncio.to_thread(set_box, book.folder, place, wanted, seen, ticked=ticked)
        plan = await self._record(book, wanted, file, setting.apply)
        now = book.told = await self._state(book)
        after = self._existing(now, wanted, "task_id")[0]
        freed = [other for other in state.dependants(wanted) if other in state.blocks and other not in now.blocks]
        return Updated(now, after, freed, remark_on(after, state), plan)

    async def deps(
        self, task_id: str, operation: str = "list", depends_on: Sequence[str] = (), *, path: str | None = None
    ) -> Dependencies:
        """Show, add or remove what a task depends on."""
        validate_choice(operation, "operation", OPERATIONS)
        reference = parse_reference(task_id, "task_id")
        needed = [parse_reference(each, "depends_on", reference.change) for each in depends_on]
        if (operation == "list") == bool(needed):
            needs = "takes no depends_on" if operation == "list" else "needs depends_on"
            raise invalid(f"operation {operation} {needs}")
        book = await self._book(path)
        for _ in range(_TRIES):
            state = await self._state(book)
            task, own = self._resolve(state, reference, "task_id")
            if operation == "list":
                book.told = state
                return Dependencies(state, task, state.dependants(task.id))
            _check_still_the_same(own, task, reference, book.told)
            change = self._add_needs if operation == "add" else self._remove_needs
            plan, done = await change(book, state, task, needed)
            if plan is not None:
                state = book.told = await self._state(book)
                task = self._existing(state, task.id, "task_id")[0]
                added, removed = (done, ()) if operation == "add" else ((), done)
                return Dependencies(state, task, state.dependants(task.id), added, removed, plan)
        raise Conflict(f"{task_id} was not changed: others change the registry all the time; try again")

    async def state(self, path: str | None = None) -> State:
        """Everything there is to know of a folder's tasks."""
        return (await self._report_state(path))[1]

    async def contents(self, path: str | None = None) -> tuple[Folder, Contents, State]:
        """The folder itself, for those who read more of it than tasks."""
        book, state = await self._report_state(path)
        return Folder(book.folder.root), book.contents, state

    async def _add_needs(
        self, book: FolderState, state: State, task: Task, references: Sequence[Reference]
    ) -> tuple[Plan | None, Sequence[TaskId]]:
        others: dict[TaskId, None] = {}
        for reference in references:
            needed, change = self._resolve(state, reference, "depends_on")
            _check_still_the_same(change, needed, reference, book.told)
            others[needed.id] = None
        for other in others:
            if round_trip := way(state.needs, other, task.id):
                steps = circle([task.id, *round_trip])
                raise Conflict(f"{task.id} cannot depend on {other}: that would be a cycle, {steps}")
        new = [other for other in others if other not in state.needs.get(task.id, ())]

        def work(table: TaskTable) -> None:
            for other in new:
                table.add_need(self._row(table, task.id), self._row(table, other))

        return (await self._change_needs(book, state, [task.id, *new], work) if new else Plan()), new

    async def _remove_needs(
        self, book: FolderState, state: State, task: Task, references: Sequence[Reference]
    ) -> tuple[Plan | None, Sequence[TaskId]]:
        # What is no longer there can be removed as well.
        places = (each.place or self._resolve(state, each, "depends_on")[0].id for each in references)
        others = list(dict.fromkeys(places))
        needed = state.needs.get(task.id, ())
        for other in others:
            if other in task.depends:
                raise invalid(
                    f"{task.id} depends on {other} because line {task.line} of its tasks.md says so: change it there"
                )
            if other not in needed:
                raise not_found(f"{task.id} does not depend on {other}; it depends on {some(needed) or 'nothing'}")
        kept = [state.kept[task.id][other] for other in others]

        def work(table: TaskTable) -> None:
            for need in kept:
                table.remove_need(need)

        return await self._change_needs(book, state, [task.id], work), others

    async def _change_needs(
        self, book: FolderState, state: State, touched: Sequence[TaskId], work: Callable[[TaskTable], None]
    ) -> Plan | None:
        """Do it, if the registry still is what it was when it was found to be right."""
        files = {task.change: state.changes[task.change].file for task in touched}
        rules = Rules(self._clock())

        def write(connection: DatabaseConnection) -> Plan | None:
            table = TaskTable(connection, book.root)
            if table.version != state.version:
                return None
            table.make(rules.now)
            plan = Plan()
            for change, file in files.items():
                plan_change(plan, change, table.of_change(change), file.items, rules)
            plan.write(table)
            work(table)
            return plan

        return await self._database.write(write)

    async def _record(
        self, book: FolderState, task: TaskId, file: TaskFile, change: Callable[[TaskRow], TaskRow]
    ) -> Plan:
        """Bring what is known of a change in line with its file, and change what is known of one task."""
        rules = Rules(self._clock(), number=task.number, change=change)

        def work(connection: DatabaseConnection) -> Plan:
            table = TaskTable(connection, book.root)
            table.make(rules.now)
            plan = Plan()
            plan_change(plan, task.change, table.of_change(task.change), file.items, rules)
            plan.write(table)
            return plan

        return await self._database.write(work)

    @staticmethod
    def _row(table: TaskTable, task: TaskId) -> int:
        """The row of a task, which is in line with its file by now."""
        rows = table.of_change(task.change)
        return next(row.id for row in rows if not row.gone and row.number == task.number)

    async def _book(self, path: str | None) -> FolderState:
        root = await self.project.folder(path)
        book = self._books.get(root)
        if book is None:
            book = self._books[root] = FolderState(Folder(root))
            while len(self._books) > _MOST_FOLDERS:
                self._books.popitem(last=False)
        self._books.move_to_end(root)
        return book

    async def _report_state(self, path: str | None) -> tuple[FolderState, State]:
        """The state, for somebody who is going to be told of it."""
        book = await self._book(path)
        state = book.told = await self._state(book)
        return book, state

    async def _state(self, book: FolderState) -> State:
        version = book.rows.version
        delta = await self._database.read(lambda connection: TaskTable(connection, book.root).since(version))
        return await asyncio.to_thread(book.take, delta)

    @staticmethod
    def _change(state: State, change: str) -> ChangeTasks:
        if change not in state.changes:
            raise unknown_change(change, state.changes, state.unread)
        return state.changes[change]

    def _resolve(self, state: State, reference: Reference, parameter: str) -> tuple[Task, ChangeTasks]:
        """The one task that a reference fits."""
        if reference.place is not None:
            return self._existing(state, reference.place, parameter)
        change = self._change(state, reference.change)
        found = [task for task in change.tasks if reference.fits(task.id.number, task.content)]
        if len(found) > 1:
            raise ambiguous(reference, found, parameter)
        if not found:
            raise not_found(
                f"{parameter}: no task of {reference.change} has the number {reference.number} before its text"
            )
        return found[0], change

    def _existing(self, state: State, wanted: TaskId, parameter: str) -> tuple[Task, ChangeTasks]:
        change = self._change(state, wanted.change)
        task = state.task(wanted)
        if task is None:
            raise not_found(f"{parameter}: there is no task {wanted}: {wanted.change} has {len(change.tasks)}")
        return task, change


def _check_still_the_same(change: ChangeTasks, task: Task, reference: Reference, told: State | None) -> None:
    """A number that was another task's at the last sync, or when it was told last, may still be meant for that one."""
    known = [each for each in change.known if not each.gone and reference.fits(each.number, each.content)]
    if known and all(each.id != task.known for each in known):
        raise _another(task, known[0].content, "since the last sync", "registry_sync, then look for")
    seen = told.changes.get(reference.change) if told is not None else None
    before = [each for each in seen.tasks if reference.fits(each.id.number, each.content)] if seen is not None else []
    if before and not any(_is_the_same(each, task) for each in before):
        raise _another(task, before[0].content, "since it was read", "look for")


def _is_the_same(before: Task, now: Task) -> bool:
    """Whether it is the same row, or says the same: a number that is printed in it may be another."""
    return (before.known is not None and before.known == now.known) or digest(before.content) == digest(now.content)


def _another(task: Task, before: str, since: str, advice: str) -> Conflict:
    return Conflict(
        f"{task.id} was not changed: its tasks.md has changed {since}. It was {before[:80]!r}"
        f" and is {task.content[:80]!r} now; {advice} the right number with registry_list"
    )
