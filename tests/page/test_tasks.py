"""Tasks at the page: changes and how far they are, what is next, ticks, dependencies, and the graph of changes."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Locator, Page, expect

from page import PHONE, Visit, gateway, pegboard, rest, visiting
from tasks.project import tasks_md, write, write_tasks

HOSTILE = "<img src=x onerror=alert(1)>\u202e<b>"
GERMAN = "Rechtsschutzversicherungsgesellschaftenverzeichnis"
CHINESE = "修复登录页面"
ARABIC = "إصلاح صفحة تسجيل الدخول"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project: three changes that need each other, a circle, something that is missing, and texts of all kinds."""
    write(tmp_path / "project", {"changes/add-login/proposal.md": "# Change: Add a login\n"})
    write_tasks(
        tmp_path / "project",
        add_users="- [x] Table of users\n- [x] Passwords\n- [ ] Remove users\n",
        add_login="- [x] Plan <!-- depends: add-users/1 -->\n- [ ] Build the form\n"
        "- [ ] Sign out <!-- depends: 2 -->\n",
        add_roles="- [ ] Roles <!-- depends: add-login/2, gone/1 -->\n",
        left="- [ ] One <!-- depends: right/1 -->\n- [ ] Two\n",
        right="- [ ] One\n- [ ] Two <!-- depends: left/2 -->\n",
    )
    texts = f"- [ ] {HOSTILE}\n- [ ] {GERMAN * 10}\n- [ ] {CHINESE}\n- [ ] {ARABIC}\n- [ ] {'long ' * 2000}\n"
    return write(tmp_path / "project", {f"changes/{CHINESE}/tasks.md": texts})


@pytest.fixture
def url(tmp_path: Path, root: Path) -> Generator[str]:
    """A gateway for that project."""
    with gateway(tmp_path, {}, workspace=str(root)) as address:
        yield address


def section(page: Page, name: str) -> Locator:
    """A part of a screen."""
    return page.get_by_role("region", name=name)


def box(where: Page | Locator, task: str) -> Locator:
    """A task's box."""
    return where.get_by_role("checkbox", name=f"{task} is completed", exact=True)


def test_changes_tell_how_far_they_are(context: BrowserContext, url: str) -> None:
    """Progress, what each needs and whether that is done, circles, what is missing; what is next and why, and what
    holds up other tasks."""
    with visiting(context, url) as visit:
        page = visit.open("tasks")
        rows = section(page, "Changes").get_by_role("row")
        login = rows.filter(has=page.get_by_role("link", name="Add a login", exact=True))
        expect(login).to_contain_text("1 of 3")
        expect(login.get_by_role("progressbar")).to_have_attribute("value", "1")
        expect(login).to_contain_text("add-users (done)")
        expect(rows.filter(has_text="in a cycle")).to_have_count(2)
        expect(rows.filter(has_text="missing")).to_contain_text("gone")
        following = section(page, "Next").get_by_role("listitem")
        expect(following.first).to_contain_text("add-users/3")
        expect(following.first).to_contain_text("priority medium; add-users is at 2 of 3; it depends on nothing")
        expect(following).to_have_count(4)
        held = section(page, "Held up").get_by_role("listitem")
        expect(held.filter(has_text="add-login/3")).to_contain_text("add-login/2 is pending")
        expect(held.filter(has_text="add-roles/1")).to_contain_text("gone/1 does not exist")
        visit.check_accessible()


def test_a_tick_is_in_the_file_and_can_be_undone(context: BrowserContext, url: str, root: Path) -> None:
    """What can begin then is said; an edit by hand is told as a conflict, in which the file wins."""
    with visiting(context, url) as visit:
        page = visit.open("tasks/add-login")
        tasks = section(page, "Tasks")
        box(tasks, "add-login/2").click()
        expect(box(tasks, "add-login/2")).to_be_checked()
        expect(page.get_by_text("Can begin now: add-login/3.")).to_be_visible()
        assert "- [x] Build" in tasks_md(root, "add-login").read_text()
        page.get_by_role("button", name="Undo").click()
        expect(box(tasks, "add-login/2")).not_to_be_checked()
        assert "- [ ] Build" in tasks_md(root, "add-login").read_text()
        box(tasks, "add-login/2").focus()
        page.keyboard.press("Space")
        expect(box(tasks, "add-login/2")).to_be_checked()
        file = tasks_md(root, "add-login")
        file.write_text(file.read_text().replace("- [x] Build", "- [ ] Build"))
        page.get_by_role("button", name="Compare with the files").click()
        conflict = page.get_by_role("status").filter(has_text="In the files")
        expect(conflict).to_contain_text("completed here, not ticked in the file; the file counts: it is pending")
        expect(box(tasks, "add-login/2")).not_to_be_checked()
        conflict.get_by_role("button", name="Dismiss").click()
        expect(conflict).to_have_count(0)


def test_a_disagreement_is_told_with_any_change(context: BrowserContext, url: str, root: Path) -> None:
    """A box that was ticked by hand wins over what was set here, and whoever changes something there reads so; what is
    merely new is nothing to tell."""
    with visiting(context, url) as visit:
        page = visit.open("tasks/add-login/3")
        page.get_by_label("Status").select_option("blocked")
        expect(page.get_by_text("status saved.")).to_be_visible()
        conflict = page.get_by_role("status").filter(has_text="In the files")
        expect(conflict).to_have_count(0)
        file = tasks_md(root, "add-login")
        file.write_text(file.read_text().replace("- [ ] Sign out", "- [x] Sign out"))
        page.get_by_label("Priority").select_option("low")
        expect(conflict).to_contain_text("blocked here, ticked in the file; the file counts: it is completed")
        expect(page.get_by_label("Status")).to_have_value("completed")


def test_a_tick_that_is_refused_changes_nothing(context: BrowserContext, url: str, root: Path) -> None:
    """Where the file holds another task by now, the gateway's words say so, and the box stays empty."""
    with visiting(context, url) as visit:
        page = visit.open("tasks/add-users")
        expect(box(section(page, "Tasks"), "add-users/3")).not_to_be_checked()
        tasks_md(root, "add-users").write_text("- [ ] Something else altogether\n" * 3)
        box(section(page, "Tasks"), "add-users/3").click()
        expect(page.locator(".notice.bad")).to_contain_text("add-users/3")
        expect(box(section(page, "Tasks"), "add-users/3")).not_to_be_checked()
        assert "[x]" not in tasks_md(root, "add-users").read_text()
        visit.complaints.clear()  # The browser says by itself that an answer was 409.


def test_others_changes_are_seen_as_they_happen(context: BrowserContext, url: str) -> None:
    """A tick of an agent is in the list, in the progress and in what is next, without a reload, and takes nothing from
    whoever types."""
    with visiting(context, url) as visit:
        page = visit.open("tasks")
        expect(section(page, "Next").get_by_role("listitem").first).to_contain_text("add-users/3")
        expect(page.get_by_text("Live")).to_be_visible()
        page.get_by_label("Folder").fill("/being/typed")
        rest(f"{url}/api/tasks/add-users/3", "PATCH", {"status": "completed"})
        expect(section(page, "Changes").get_by_role("row").filter(has_text="3 of 3")).to_contain_text("completed")
        expect(section(page, "Next").get_by_role("listitem").first).not_to_contain_text("add-users/3")
        expect(page.get_by_label("Folder")).to_have_value("/being/typed")


def test_a_task_is_changed(context: BrowserContext, url: str) -> None:
    """Status, priority, assignee and notes, each when its field is left; what it depends on is added and removed,
    and a circle is refused."""
    with visiting(context, url) as visit:
        page = visit.open("tasks/add-login/2")
        page.get_by_label("Status").select_option("in_progress")
        expect(page.get_by_text("status saved.")).to_be_visible()
        page.get_by_label("Priority").select_option("critical")
        expect(page.get_by_text("priority saved.")).to_be_visible()
        page.get_by_label("Assignee").fill("ada")
        page.get_by_label("Notes").fill("First\nsecond")
        page.get_by_label("Status").focus()
        expect(page.get_by_text("notes saved.")).to_be_visible()
        task = rest(f"{url}/api/tasks/add-login/2")["task"]
        assert (task["status"], task["priority"]) == ("in_progress", "critical")
        assert (task["assignee"], task["notes"]) == ("ada", "First\nsecond")
        page.get_by_role("button", name="Undo").click()
        expect(page.get_by_label("Notes")).to_have_value("")
        expect(section(page, "Waiting for it")).to_contain_text("add-login/3")
        depends = section(page, "Depends on")
        other = depends.get_by_label("Add a task, as change/number")
        other.fill("add-users/3")
        other.press("Enter")
        expect(depends.get_by_role("listitem")).to_contain_text("Remove users")
        expect(other).to_have_value("")
        expect(page.get_by_text("Held up: add-users/3 is pending")).to_be_visible()
        depends.get_by_role("button", name="Remove add-users/3").click()
        expect(depends.get_by_role("listitem")).to_have_count(0)
        page.get_by_role("button", name="Undo").click()
        expect(depends.get_by_role("listitem")).to_have_count(1)
        other.fill("add-login/3")
        other.press("Enter")
        expect(page.locator(".notice.bad")).to_contain_text("that would be a cycle")
        expect(other).to_have_value("add-login/3")
        visit.open("tasks/add-login/3")
        expect(section(page, "Depends on")).to_contain_text("as its line in tasks.md says")
        expect(page.get_by_role("button", name=re.compile("^Remove"))).to_have_count(0)
        visit.check_accessible()
        visit.complaints.clear()  # The browser says by itself that an answer was no success.


def test_what_is_refused_is_said_where_it_was_set(context: BrowserContext, url: str, root: Path) -> None:
    """A choice is shown as it was before; a text stays in its field, so that nobody writes it twice, and no change of
    others takes it."""
    with visiting(context, url) as visit:
        page = visit.open("tasks/add-users/3")
        notes = page.get_by_label("Notes")
        notes.fill("long " * 5000)
        page.get_by_label("Status").focus()
        expect(page.locator(".notice.bad")).to_contain_text("notes")
        rest(f"{url}/api/tasks/add-users/3", "PATCH", {"priority": "low"})
        expect(page.get_by_label("Priority")).to_have_value("low")
        expect(notes).to_have_value("long " * 5000)
        tasks_md(root, "add-users").write_text("- [ ] Something else altogether\n" * 3)
        page.get_by_label("Status").select_option("completed")
        expect(page.locator(".notice.bad")).to_contain_text("add-users/3")
        expect(page.get_by_label("Status")).to_have_value("pending")
        visit.complaints.clear()  # The browser says by itself that an answer was no success.


def test_changes_are_drawn(context: BrowserContext, url: str) -> None:
    """From left to right, each a link, with what it needs in words; circles are told; keys move in the picture."""
    with visiting(context, url) as visit:
        page = visit.open("tasks?tab=graph")
        graph = page.get_by_role("group", name="Graph of changes")
        names = ["add-users", "Add a login", "add-roles"]
        left = [graph.get_by_role("link", name=re.compile(f"^{name}")).bounding_box() for name in names]
        assert [place["x"] for place in left if place] == sorted({place["x"] for place in left if place})
        expect(graph.get_by_role("link")).to_have_count(6)
        expect(graph.get_by_role("link", name=re.compile("^left"))).to_have_accessible_name(
            re.compile("0 of 2 done, in a cycle.*needs right")
        )
        expect(graph.locator("path.cycle")).to_have_count(2)
        expect(graph.locator("path.met")).to_have_count(1)
        expect(graph.get_by_role("link", name="gone missing")).to_be_visible()
        visit.check_accessible()
        visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        visit.check_accessible()
        graph.focus()
        before = graph.evaluate("(each) => each.scrollLeft")
        for _ in range(5):
            page.keyboard.press("ArrowRight")
        page.wait_for_function("(before) => document.querySelector('.graph').scrollLeft > before", arg=before)
        graph.get_by_role("link", name="Add a login").click()
        expect(page.get_by_role("heading", level=1, name="add-login")).to_be_visible()


def test_tasks_are_chosen(context: BrowserContext, url: str, root: Path) -> None:
    """By status, priority, assignee and what blocks them, in the address; of many, the rest on demand, and it stays
    when something changes."""
    write_tasks(root, many="".join(f"- [ ] Task {number}\n" for number in range(250)))
    rest(f"{url}/api/tasks/many/7", "PATCH", {"status": "in_progress", "priority": "high", "assignee": "ada"})
    with visiting(context, url) as visit:
        page = visit.open("tasks?tab=tasks")
        count = page.get_by_role("status").filter(has_text="task")
        expect(count).to_have_text("266 tasks")
        page.get_by_label("Status").select_option("in_progress")
        expect(count).to_have_text("1 task")
        page.get_by_label("Priority").select_option("low")
        expect(page.get_by_text("No task fits.")).to_be_visible()
        page.get_by_label("Priority").select_option("high")
        page.get_by_label("Assignee").fill("ada")
        page.get_by_label("Assignee").press("Enter")
        expect(count).to_have_text("1 task")
        assert "status=in_progress" in page.url
        assert "assignee=ada" in page.url
        visit.open("tasks?tab=tasks&unblocked=true")
        expect(page.get_by_label("Nothing blocks it")).to_be_checked()
        expect(count).to_have_text("262 tasks")
        page.get_by_label("Nothing blocks it").click()
        expect(count).to_have_text("266 tasks")
        visit.open("tasks/many")
        items = section(page, "Tasks").get_by_role("listitem")
        expect(box(section(page, "Tasks"), "many/1")).to_be_visible()
        first = items.count()
        assert first <= 100
        page.get_by_role("button", name="Show more").click()
        expect(items.nth(first)).to_be_visible()
        shown = items.count()
        last = box(section(page, "Tasks"), f"many/{shown}")
        last.click()
        expect(last).to_be_checked()
        expect(items).to_have_count(shown)


def test_another_folder_is_chosen(context: BrowserContext, url: str, tmp_path: Path) -> None:
    """It stays in every link; one that holds no openspec says what to do; one without changes, too."""
    write_tasks(tmp_path / "other", elsewhere="- [ ] Only here\n")
    (tmp_path / "empty/openspec/changes").mkdir(parents=True)
    with visiting(context, url) as visit:
        page = visit.open("tasks")
        folder = page.get_by_label("Folder")
        folder.fill(str(tmp_path / "other"))
        folder.press("Enter")
        expect(section(page, "Changes").get_by_role("link", name="elsewhere")).to_be_visible()
        expect(page.get_by_role("link", name="add-users")).to_have_count(0)
        section(page, "Changes").get_by_role("link", name="elsewhere").click()
        box(section(page, "Tasks"), "elsewhere/1").click()
        expect(box(section(page, "Tasks"), "elsewhere/1")).to_be_checked()
        assert "- [x] Only" in tasks_md(tmp_path / "other", "elsewhere").read_text()
        page.get_by_role("link", name="All changes").click()
        expect(page.get_by_label("Folder")).to_have_value(str(tmp_path / "other"))
        folder.fill(str(tmp_path / "empty"))
        folder.press("Enter")
        expect(page.get_by_text("No changes yet.")).to_contain_text("openspec/changes/NAME/tasks.md")
        page.get_by_role("link", name="Graph").click()
        expect(page.get_by_text("No change depends on another.")).to_be_visible()
        visit.check_accessible()
        folder.fill("/nowhere")
        folder.press("Enter")
        expect(page.get_by_text("`openspec init` makes one")).to_be_visible()
        page.get_by_role("link", name="Servers", exact=True).click()
        expect(page.get_by_role("heading", level=1, name="Servers")).to_be_visible()
        page.goto(f"{url}/#/tasks")
        page.get_by_label("Folder").fill(str(tmp_path / "other"))
        page.go_back()
        expect(page.get_by_role("heading", level=1, name="Servers")).to_be_visible()
        page.wait_for_timeout(0)
        assert page.url.endswith("#/servers")
        page.go_back()
        expect(folder).to_have_value("/nowhere")
        folder.fill("/elsewhere")
        page.go_back()
        expect(folder).to_have_value(str(tmp_path / "empty"))


def test_any_text_fits_a_phone(context: BrowserContext, url: str) -> None:
    """Markup stays text, long words wrap, and nothing is wider than the window."""
    with visiting(context, url) as visit:
        visit.page.set_viewport_size(PHONE)  # pyright: ignore[reportArgumentType]
        page = visit.open("tasks")
        expect(section(page, "Changes").get_by_role("link", name=CHINESE)).to_be_visible()
        visit.check_accessible()
        visit.open(f"tasks/{quote(CHINESE)}")
        expect(section(page, "Tasks").get_by_role("link", name=HOSTILE)).to_be_visible()
        visit.check_accessible()
        for number in range(1, 6):
            visit.open(f"tasks/{quote(CHINESE)}/{number}")
            expect(page.get_by_label("Notes")).to_be_visible()
            visit.check_fits()
        visit.check_accessible()
        assert page.locator("main img").count() == 0


def test_an_id_is_copied(context: BrowserContext, url: str) -> None:
    """That of a task in a list, and that of a change."""
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    with visiting(context, url) as visit:
        page = visit.open("tasks/add-login")
        page.get_by_role("button", name="Copy add-login/1").click()
        expect(page.get_by_text("Copied.")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == "add-login/1"
        page.get_by_role("button", name="Copy the id").click()
        page.wait_for_function("navigator.clipboard.readText().then((text) => text === 'add-login')")


def test_whoever_only_reads_is_offered_no_changes(context: BrowserContext, tmp_path: Path, root: Path) -> None:
    """A token that reads sees tasks, with boxes that do nothing."""
    with gateway(tmp_path, {}, workspace=str(root), auth={"required": True}) as address:
        words = pegboard(tmp_path / "pegboard.json", "token", "add", "reader", "--read-only").split()
        visit = Visit(context.new_page(), address)
        page = visit.open("tasks/add-login")
        page.get_by_label("Token").fill(next(word for word in words if word.startswith("pgb_")))
        page.get_by_role("button", name="Sign in").click()
        expect(box(section(page, "Tasks"), "add-login/2")).to_be_disabled()
        expect(page.get_by_role("button", name="Compare with the files")).to_have_count(0)
        visit.open("tasks/add-login/3")
        expect(page.get_by_label("Status")).to_be_disabled()
        expect(page.get_by_label("Add a task")).to_have_count(0)
        assert visit.strangers == []
        page.close()


def test_no_folder_at_all_says_what_to_do(context: BrowserContext, tmp_path: Path) -> None:
    """In the gateway's words, with the field for a folder above them; nothing there can be compared, and the browser
    has nothing to complain of."""
    (tmp_path / "bare").mkdir()
    with gateway(tmp_path, {}, workspace=str(tmp_path / "bare")) as address, visiting(context, address) as visit:
        page: Any = visit.open("tasks")
        expect(page.get_by_text("`openspec init` makes one")).to_be_visible()
        expect(page.get_by_text("openspec/changes/NAME/tasks.md")).to_be_visible()
        expect(page.get_by_label("Folder")).to_be_visible()
        expect(page.get_by_role("button", name="Compare with the files")).to_have_count(0)
        visit.check_accessible()


def test_without_a_project_people_are_spoken_to(context: BrowserContext, tmp_path: Path) -> None:
    """In words for people, also where an address names a task."""
    with gateway(tmp_path, {}) as address, visiting(context, address) as visit:
        for screen in ("tasks", "tasks/gift-cards", "tasks/gift-cards/1.1"):
            page = visit.open(screen)
            expect(page.get_by_text("There is no project where Pegboard was started.")).to_be_visible()
            expect(page.get_by_text("Your client names none")).to_have_count(0)
            expect(page.get_by_label("Folder")).to_be_visible()
        visit.complaints.clear()  # The browser says by itself that an answer was 404.
