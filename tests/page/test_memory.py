"""Memory at the page: found, read, written and linked by people, and the picture of how memories hang together."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import BrowserContext, Dialog, Locator, Page, expect

from page import DESKTOP, PHONE, Visit, gateway, pegboard, rest, visiting

# Keys that are hard to put into an address, a table or a picture.
ODD = [
    "a/b c?d#e%f&g=h",
    "50%",
    "linked",
    "x/rename",
    "<img src=x onerror=alert(1)>",
    "日本語/メモ:決定",
    "مذكرة:قرار:الدفع",
    "Überweisungsgebühren:" + "sehrlangesWort" * 12,
]
HUB = 600
_COUNT_DRAWINGS = """
  window.drawings = 0;
  const scale = CanvasRenderingContext2D.prototype.scale;
  CanvasRenderingContext2D.prototype.scale = function (...factors) { window.drawings++; scale.apply(this, factors); };
"""
_INK = """(canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  const colours = {};
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] < 255) continue;
    const colour = [data[at], data[at + 1], data[at + 2]].join();
    colours[colour] = (colours[colour] ?? 0) + 1;
  }
  return colours;
}"""
_ACCENT = {"light": "12,97,82", "dark": "122,208,188"}


def address(key: str) -> str:
    """A key as it stands in an address."""
    return quote(key, safe="")


def write(url: str, key: str, text: str = "", *targets: str, namespace: str = "", **more: Any) -> Any:
    """Write a memory down, as an agent does."""
    links = [{"key": target} for target in targets]
    query = f"?namespace={quote(namespace)}" if namespace else ""
    return rest(f"{url}/api/memories{query}", "POST", {"key": key, "text": text, "links": links, **more})


def read(url: str, key: str) -> Any:
    """A memory as REST gives it."""
    return rest(f"{url}/api/memories/{address(key)}?sortLinks=false")


def heading(page: Page) -> Locator:
    """What the screen is about."""
    return page.get_by_role("heading", level=1)


def row(page: Page, key: str) -> Locator:
    """A row of a list."""
    return page.get_by_role("row").filter(has=page.get_by_role("link", name=key, exact=True))


def picture(page: Page) -> Locator:
    """The picture, when it is at rest."""
    canvas = page.get_by_role("img", name="Picture of how memories are linked")
    expect(canvas).to_have_attribute("data-state", "settled")
    return canvas


def text_of(page: Page) -> Locator:
    """The field of its text."""
    return page.get_by_role("textbox", name=re.compile("^Text"))


def section(page: Page, name: str) -> Locator:
    """A part of the screen."""
    return page.get_by_role("region", name=re.compile(re.escape(name)))


def accept(dialog: Dialog) -> None:
    """What somebody says who is asked by the browser."""
    dialog.accept()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway with memories that nobody changes: some with odd keys, one with many links."""
    with gateway(tmp_path_factory.mktemp("memory"), {}) as url:
        for number, key in enumerate(ODD):
            write(url, key, f"Text of {key} " * 50, ODD[(number + 1) % len(ODD)], summary=f"<b>About</b> {key}")
        for number in range(42):
            words = ["stripe", "paypal", "invoice refund"][number % 3]
            write(url, f"shop:{number:02}", f"We chose {words} in May.", "hub", summary=f"Number {number}")
        write(url, "hub", "", *(f"leaf:{number}" for number in range(460)))
        write(url, "elsewhere", "of another project", namespace="other project")
        write(url, "around", "", "near:1", "near:2", "near:3")
        write(url, "near:1", "", "far:1", "far:2")
        write(url, "long", "".join(f"{number}. Zeile mit Wörtern\n" for number in range(3000)))
        yield url


@pytest.fixture(scope="module")
def changing(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A gateway whose memories tests change."""
    with gateway(tmp_path_factory.mktemp("changing"), {}) as url:
        yield url


@pytest.fixture
def url(changing: str) -> str:
    """Its address, with three memories that nobody has changed yet."""
    for found in rest(f"{changing}/api/memories")["memories"]:
        rest(f"{changing}/api/memories/{address(found['key'])}", "DELETE")
    write(changing, "one", "The first text.", "two", summary="First")
    write(changing, "two", "The second text.")
    write(changing, "three", "Something about invoices.", "one")
    return changing


def test_memories_are_listed_and_found_in_three_ways(context: BrowserContext, shop: str) -> None:
    """A page at a time, the latest change first, with links and words; by what they are about, by any word and by all
    words; what was searched for is in the address, and is marked; a namespace is a world of its own."""
    total = rest(f"{shop}/api/memories")["pagination"]["total"]
    with visiting(context, shop) as visit:
        page = visit.open("memory")
        expect(page.get_by_text(f"{total} memories")).to_be_visible()
        expect(page.get_by_role("row")).to_have_count(51)
        expect(row(page, "hub")).to_contain_text("460 out, 42 in")
        expect(row(page, "elsewhere")).to_have_count(0)
        page.get_by_role("button", name="Show more").click()
        expect(page.get_by_role("row")).to_have_count(total + 1)
        expect(page.get_by_role("button", name="Show more")).to_have_count(0)
        expect(row(page, ODD[4])).to_contain_text("<b>About</b>")
        page.get_by_label("Search").fill("how do we refund invoices?")
        expect(page.get_by_role("row").nth(1).locator("mark").first).to_have_text(re.compile("invoice|refund"))
        expect(page).to_have_url(re.compile(r"q=how\+do\+we"))
        page.get_by_label("Search").fill("stripe paypal")
        page.get_by_label("Look for").select_option("any of the words")
        expect(page.get_by_text("28 memories")).to_be_visible()
        page.get_by_label("Look for").select_option("all of the words")
        expect(page.get_by_text("Nothing was found.")).to_be_visible()
        expect(page).to_have_url(re.compile("by=AND"))
        page.get_by_label("Search").fill('"refund invoice"')
        expect(page.get_by_text("Nothing was found.")).to_be_visible()
        page.get_by_label("Search").fill('"invoice refund", may')
        expect(page.get_by_text("14 memories")).to_be_visible()
        page.reload()
        expect(page.get_by_text("14 memories")).to_be_visible()
        expect(page.get_by_label("Look for")).to_have_value("AND")
        page.get_by_role("link", name="Memory", exact=True).click()
        expect(page.get_by_label("Search")).to_have_value("")
        expect(page.get_by_text("the latest change first")).to_be_visible()
        page.get_by_label("Namespace").fill("other project")
        expect(page.get_by_text("1 memory,")).to_be_visible()
        page.get_by_role("link", name="elsewhere").click()
        expect(page.get_by_text("of another project")).to_be_visible()
        page.get_by_role("link", name="All memories").click()
        expect(page.get_by_label("Namespace")).to_have_value("other project")


def test_any_key_is_opened_by_its_links(context: BrowserContext, shop: str) -> None:
    """Whatever is in a key: its address works, its text is text, and the links from and to it are listed."""
    with visiting(context, shop) as visit:
        page = visit.open(f"memory/{address(ODD[-1])}")
        for place, key in enumerate(ODD):
            section(page, "Links to").get_by_role("link", name=key, exact=True).click()
            expect(heading(page)).to_have_text(key)
            expect(page.locator(".prose")).to_contain_text(f"Text of {key}")
            expect(section(page, "Linked from").get_by_role("link", name=ODD[place - 1], exact=True)).to_be_visible()
            assert page.locator("main img").count() == 0
        page.reload()
        expect(heading(page)).to_have_text(ODD[-1])
        picture(page)


def test_every_state_is_accessible(context: BrowserContext, shop: str) -> None:
    """The list, what was found, a memory, its editor, its dialogs: nothing for axe-core to find, nothing too wide."""
    with visiting(context, shop) as visit:
        for size, scheme in ((PHONE, "dark"), (DESKTOP, "light")):
            visit.page.set_viewport_size(size)  # type: ignore[arg-type]
            visit.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            for screen in ("memory?q=refund", "memory?new=1", f"memory/{address(ODD[-1])}?edit=1"):
                page = visit.open(screen)
                expect(page.get_by_role("link", name="Add a memory").or_(text_of(page))).to_be_visible()
                visit.check_accessible()
            page = visit.open(f"memory/{address(ODD[-1])}?depth=3")
            picture(page)
            visit.check_accessible()
            page.get_by_role("button", name="Link", exact=True).click()
            expect(page.get_by_role("list", name="Found").get_by_role("button").first).to_be_visible()
            visit.check_accessible()
        page = visit.open("memory")
        expect(page.get_by_role("link", name="hub")).to_be_visible()
        visit.check_accessible()


def test_a_long_text_is_read_to_its_end(context: BrowserContext, shop: str) -> None:
    """Its beginning is shown, the rest when somebody asks, and all of it is edited."""
    with visiting(context, shop) as visit:
        page = visit.open("memory/long")
        expect(page.locator(".prose")).not_to_contain_text("2999. Zeile")
        page.get_by_role("button", name=re.compile("Show all")).click()
        expect(page.locator(".prose")).to_contain_text("2999. Zeile mit Wörtern")
        page.get_by_role("link", name="Edit").click()
        expect(text_of(page)).to_have_value(re.compile(r"^0\. Zeile.*\n2999\. Zeile mit Wörtern\n$", re.DOTALL))


def test_the_picture_is_drawn_and_followed_by_keyboard(context: BrowserContext, shop: str) -> None:
    """In the colours of the scheme, also when that changes; arrow keys go along links and tell where they are, Enter
    opens what is there."""
    with visiting(context, shop) as visit:
        page = visit.open("memory/around")
        canvas = picture(page)
        expect(canvas).to_have_attribute("aria-label", re.compile("6 memories within 2 links, 5 links between them"))
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.wait_for_function(
                f"(canvas) => ({_INK})(canvas)['{_ACCENT[scheme]}'] > 100", arg=canvas.element_handle()
            )
        canvas.focus()
        said = page.locator(".canvas [aria-live]")
        expect(said).to_have_text("around")
        canvas.press("ArrowRight")
        seen = set[str]()
        for _ in range(3):
            seen.add(said.inner_text().split(",")[0])
            canvas.press("ArrowDown")
        assert len(seen) == 3
        for _ in range(3):
            canvas.press("ArrowUp")
        expect(said).to_have_text(
            re.compile("not written yet, 1 of 3 linked with around|near:1, 1 of 3 linked with around")
        )
        while not said.inner_text().startswith("near:1"):
            canvas.press("ArrowDown")
        canvas.press("ArrowRight")
        expect(said).to_have_text(re.compile(r"far:\d, not written yet, 1 of 2 linked with near:1"))
        canvas.press("ArrowLeft")
        expect(said).to_have_text(re.compile("near:1"))
        canvas.press("Enter")
        expect(heading(page)).to_have_text("near:1")


def test_a_node_is_opened_by_a_click(context: BrowserContext, shop: str) -> None:
    """Where a node is, it can be clicked, also after the picture was zoomed and dragged; a drag opens nothing."""
    with visiting(context, shop) as visit:
        page = visit.open("memory/around")
        canvas = picture(page)
        canvas.focus()
        canvas.press("ArrowRight")
        said = page.locator(".canvas [aria-live]")
        while not said.inner_text().startswith("near:1"):
            canvas.press("ArrowDown")
        before = canvas.get_attribute("data-at")
        page.get_by_role("button", name="Zoom out").click()
        expect(canvas).not_to_have_attribute("data-at", before or "")
        box = canvas.bounding_box()
        assert box is not None
        zoomed = canvas.get_attribute("data-at")
        page.mouse.move(box["x"] + 30, box["y"] + box["height"] - 30)
        page.mouse.down()
        page.mouse.move(box["x"] + 50, box["y"] + box["height"] - 60, steps=3)
        page.mouse.up()
        expect(canvas).not_to_have_attribute("data-at", zoomed or "")
        dragged = canvas.get_attribute("data-at")
        page.mouse.wheel(0, -200)
        expect(canvas).not_to_have_attribute("data-at", dragged or "")
        expect(heading(page)).to_have_text("around")
        x, y = (canvas.get_attribute("data-at") or "").split(",")
        canvas.hover(position={"x": int(x), "y": int(y)})
        expect(canvas).to_have_css("cursor", "pointer")
        canvas.click(position={"x": int(x), "y": int(y)}, button="right")
        expect(heading(page)).to_have_text("around")
        canvas.click(position={"x": int(x), "y": int(y)})
        expect(heading(page)).to_have_text("near:1")


def test_hundreds_of_links_are_laid_out_without_motion_if_wished(context: BrowserContext, shop: str) -> None:
    """At most 500 memories are in the picture, which is said; it is drawn while it moves, or once at the end."""
    with visiting(context, shop) as visit:
        visit.page.add_init_script(_COUNT_DRAWINGS)
        drawings = list[int]()
        page = visit.open("memory/hub?depth=1")
        for calm in (False, True):
            if calm:
                page.emulate_media(reduced_motion="reduce")
                page.reload()
            canvas = picture(page)
            drawings.append(page.evaluate("window.drawings"))
            assert len(page.evaluate(_INK, canvas.element_handle())) > 3
        assert drawings[0] > 5
        assert drawings[1] <= 3
        expect(page.get_by_text("500 memories within 1 link")).to_be_visible()
        expect(page.get_by_text("There are more than are shown.")).to_be_visible()
        expect(section(page, "Links to").get_by_role("row")).to_have_count(11)
        expect(section(page, "Links to").get_by_text("450 more")).to_be_visible()


def test_a_memory_is_added_changed_and_renamed(context: BrowserContext, url: str) -> None:
    """What is written in the fields is what REST gives, under the new key as well; links that lead to it follow, and
    where there are none there is no picture. A key that is taken is refused with its reason, and what was written is
    still in the fields."""
    with visiting(context, url) as visit:
        page = visit.open("memory")
        page.get_by_role("link", name="Add a memory").click()
        expect(page.get_by_role("button", name="Save")).to_be_disabled()
        expect(page.get_by_text("Once it is saved, Link joins it to other memories.")).to_be_visible()
        page.get_by_label("Key").fill("new/key 1")
        page.get_by_label("Summary").fill("In short")
        text_of(page).fill("At length.\n<b>Text</b>")
        page.get_by_role("button", name="Save").click()
        expect(heading(page)).to_have_text("new/key 1")
        expect(page.locator(".prose")).to_have_text("At length.\n<b>Text</b>")
        expect(page.get_by_text("Nothing is linked yet.")).to_be_visible()
        expect(page.locator("canvas")).to_have_count(0)
        page.get_by_role("link", name="Edit").click()
        text_of(page).fill("Better.")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".prose")).to_have_text("Better.")
        found = read(url, "new/key 1")
        assert (found["summary"], found["text"], found["version"]) == ("In short", "Better.", 2)
        visit.open("memory/one?edit=1")
        page.get_by_label("Key").fill("first")
        page.get_by_role("button", name="Save").click()
        expect(heading(page)).to_have_text("first")
        expect(section(page, "Linked from").get_by_role("link", name="three")).to_be_visible()
        assert read(url, "three")["links"][0]["key"] == "first"
        page = visit.open("memory?new=1&key=two")
        text_of(page).fill("Mine")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("already")
        expect(text_of(page)).to_have_value("Mine")
        assert read(url, "two")["text"] == "The second text."
        visit.complaints.clear()  # The browser says by itself that an answer was 409.


def test_two_who_change_the_same_both_see_both_texts(context: BrowserContext, url: str) -> None:
    """Whoever comes second is told while they write, sees the other text, and saves one of the two or a third."""
    with visiting(context, url) as first, visiting(context, url) as second:
        mine, theirs = first.open("memory/one?edit=1"), second.open("memory/one?edit=1")
        text_of(mine).fill("Mine, unfinished")
        text_of(theirs).fill("Theirs")
        theirs.get_by_role("button", name="Save").click()
        expect(theirs.locator(".prose")).to_have_text("Theirs")
        other = section(mine, "The other text")
        expect(other).to_contain_text("Theirs")
        expect(mine.get_by_role("alert")).to_contain_text("Somebody changed it meanwhile")
        first.check_accessible()
        expect(text_of(mine)).to_have_value("Mine, unfinished")
        mine.get_by_role("button", name="Swap").click()
        expect(text_of(mine)).to_have_value("Theirs")
        expect(other).to_contain_text("Mine, unfinished")
        text_of(mine).fill("Theirs and mine")
        mine.get_by_role("button", name="Save this text").click()
        expect(mine.locator(".prose")).to_have_text("Theirs and mine")
        expect(theirs.locator(".prose")).to_have_text("Theirs and mine")
        assert read(url, "one")["version"] == 3


def test_what_was_written_outlives_further_changes(context: BrowserContext, url: str) -> None:
    """Also while it stands beside the text of somebody else, who goes on writing."""
    with visiting(context, url) as visit:
        page = visit.open("memory/one?edit=1")
        text_of(page).fill("Mine, unfinished")
        rest(f"{url}/api/memories/one", "PATCH", {"text": "Theirs"})
        page.get_by_role("button", name="Swap").click()
        rest(f"{url}/api/memories/one", "PATCH", {"text": "Theirs, later"})
        others = section(page, "The other text")
        expect(others).to_have_count(2)
        expect(others.first).to_contain_text("Theirs, later")
        others.last.get_by_role("button", name="Swap").click()
        expect(text_of(page)).to_have_value("Mine, unfinished")


def test_another_memory_of_the_same_key_is_not_overwritten(context: BrowserContext, url: str) -> None:
    """One that was deleted and written anew has the version of before."""
    with visiting(context, url) as visit:
        visit.page.route("**/api/events", lambda route: route.abort())
        write(url, "fresh", "The first")
        page = visit.open("memory/fresh?edit=1")
        text_of(page).fill("Mine")
        rest(f"{url}/api/memories/fresh", "DELETE")
        write(url, "fresh", "Anew")
        page.get_by_role("button", name="Save").click()
        expect(section(page, "The other text")).to_contain_text("Anew")
        assert (read(url, "fresh")["text"], read(url, "fresh")["version"]) == ("Anew", 1)
        page.get_by_role("button", name="Save this text").click()
        expect(page.locator(".prose")).to_have_text("Mine")
        visit.complaints.clear()  # The stream is not there.


def test_a_change_that_nobody_heard_of_is_not_overwritten(context: BrowserContext, url: str) -> None:
    """Without the stream the version decides: the answer to Save is both texts, and the memory stays as it is. After a
    deletion the fields keep what was written, and Save adds the memory again with its links."""
    with visiting(context, url) as visit:
        visit.page.route("**/api/events", lambda route: route.abort())
        page = visit.open("memory/one?edit=1")
        text_of(page).fill("Mine")
        rest(f"{url}/api/memories/one", "PATCH", {"text": "Theirs"})
        page.get_by_role("button", name="Save").click()
        expect(section(page, "The other text")).to_contain_text("Theirs")
        assert read(url, "one")["text"] == "Theirs"
        page.get_by_role("button", name="Save this text").click()
        expect(page.locator(".prose")).to_have_text("Mine")
        page.unroute_all()
        page.reload()
        page.get_by_role("link", name="Edit").click()
        text_of(page).fill("Still here")
        rest(f"{url}/api/memories/one", "DELETE")
        expect(page.get_by_role("alert")).to_contain_text("Somebody deleted it")
        page.get_by_role("button", name="Save").click()
        expect(page.locator(".prose")).to_have_text("Still here")
        found = read(url, "one")
        assert (found["summary"], found["links"][0]["key"]) == ("First", "two")
        # The browser says by itself that answers were 409 and 404, and that the stream is not there.
        visit.complaints.clear()


def test_whoever_has_not_saved_is_asked_before_leaving(context: BrowserContext, url: str) -> None:
    """By a link, by the browser's history and by a reload: who stays has everything, who goes is elsewhere."""
    with visiting(context, url) as visit:
        page = visit.open("memory")
        page.get_by_role("link", name="one", exact=True).click()
        page.get_by_role("link", name="Edit").click()
        text = text_of(page)
        text.fill("Unsaved")
        page.get_by_role("link", name="Servers", exact=True).first.click()
        question = page.get_by_role("dialog", name="Leave without saving?")
        question.get_by_role("button", name="Cancel").click()
        expect(text).to_have_value("Unsaved")
        expect(page).to_have_url(re.compile("memory/one.*edit=1"))
        page.go_back()
        question.get_by_role("button", name="Cancel").click()
        expect(text).to_have_value("Unsaved")
        with page.expect_event("dialog") as asked:
            page.once("dialog", accept)
            page.reload()
        assert asked.value.type == "beforeunload"
        expect(text).to_have_value("The first text.")
        text.fill("Unsaved")
        page.get_by_role("link", name="Cancel").click()
        question.get_by_role("button", name="Leave").click()
        expect(page.locator(".prose")).to_have_text("The first text.")


def test_memories_are_linked_and_parted(context: BrowserContext, url: str) -> None:
    """With one that was found, or one that is not written yet and then can be, of any kind; both can be undone. What is
    linked already keeps the weight of its link."""
    with visiting(context, url) as visit:
        page = visit.open("memory/one")
        links = section(page, "Links to")
        page.get_by_role("button", name="Link", exact=True).click()
        dialog = page.get_by_role("dialog")
        dialog.get_by_label("Other memory").fill("invoice")
        dialog.get_by_role("list", name="Found").get_by_role("button", name="three").click()
        expect(dialog.get_by_label("Other memory")).to_have_value("three")
        dialog.get_by_label("Kind").fill("bug")
        dialog.get_by_role("button", name="Link", exact=True).click()
        expect(row(page, "three").filter(has_text="bug")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(links.get_by_role("link", name="three")).to_have_count(0)
        page.get_by_role("button", name="Unlink two").click()
        expect(links.get_by_text("None.")).to_be_visible()
        assert read(url, "one")["links"] == []
        page.get_by_role("button", name="Undo").click()
        expect(links.get_by_role("link", name="two")).to_be_visible()
        expect(picture(page)).to_have_attribute("aria-label", re.compile("3 memories within 2 links"))
        kept = [{"key": "two", "type": "related", "term": "pays", "weight": 0.9}]
        rest(f"{url}/api/memories/one", "PATCH", {"links": kept})
        expect(links).to_contain_text("0.9")
        for key in ("two", "missing"):
            page.get_by_role("button", name="Link", exact=True).click()
            dialog.get_by_label("Other memory").fill(key)
            dialog.get_by_role("button", name="Link", exact=True).click()
            expect(dialog).to_have_count(0)
        expect(links.get_by_role("link", name="missing")).to_be_visible()
        assert [link for link in read(url, "one")["links"] if link["key"] == "two"] == kept
        links.get_by_role("link", name="missing").click()
        page.get_by_role("link", name="Add a memory with this key").click()
        text_of(page).fill("Written now")
        page.get_by_role("button", name="Save").click()
        expect(section(page, "Linked from").get_by_role("link", name="one")).to_be_visible()
        visit.complaints.clear()  # The browser says by itself that an answer was 404.


def test_a_deletion_is_asked_for_and_undone(context: BrowserContext, url: str) -> None:
    """Undo writes it again with its texts and links, and the links of others lead to it as before."""
    with visiting(context, url) as visit:
        page = visit.open("memory/one")
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(heading(page)).to_have_text("Memory")
        expect(row(page, "one")).to_have_count(0)
        page.get_by_role("button", name="Undo").click()
        expect(heading(page)).to_have_text("one")
        expect(page.locator(".prose")).to_have_text("The first text.")
        expect(section(page, "Linked from").get_by_role("link", name="three")).to_be_visible()
        found = read(url, "one")
        assert (found["summary"], [link["key"] for link in found["links"]]) == ("First", ["two"])


def test_what_agents_write_is_seen_at_once(context: BrowserContext, url: str) -> None:
    """In the list, in what was found, and at a memory that is linked, changed, deleted or added, without a reload."""
    with visiting(context, url) as listed, visiting(context, url) as opened:
        listed.open("memory?q=zebra")
        opened.open("memory/one")
        picture(opened.page)
        # Whoever opens it at the page does not make it seem to be in use; this is the first time that it is read.
        assert read(url, "one")["meta"]["access_count"] == 1
        write(url, "zebra", "A zebra", "one")
        expect(row(listed.page, "zebra")).to_be_visible()
        expect(section(opened.page, "Linked from").get_by_role("link", name="zebra")).to_be_visible()
        expect(picture(opened.page)).to_have_attribute("aria-label", re.compile("4 memories"))
        # Nor does a page that is only open.
        assert read(url, "one")["meta"]["access_count"] == 2
        rest(f"{url}/api/memories/one", "PATCH", {"text": "Changed by an agent"})
        expect(opened.page.locator(".prose")).to_have_text("Changed by an agent")
        rest(f"{url}/api/memories/one", "DELETE")
        expect(opened.page.get_by_text("There is no memory with this key.")).to_be_visible()
        write(url, "one", "It is back")
        expect(opened.page.locator(".prose")).to_have_text("It is back")
        opened.complaints.clear()  # The browser says by itself that an answer was 404.


def test_who_may_only_read_is_offered_nothing_else(context: BrowserContext, tmp_path: Path) -> None:
    """A rule that only lets read hides every action, and one for a namespace hides what is not in it."""
    config = tmp_path / "pegboard.json"
    with gateway(tmp_path, {}, auth={"required": True}) as url:
        words = pegboard(config, "token", "add", "admin", "--admin").split()
        admin = {"authorization": f"Bearer {next(word for word in words if word.startswith('pgb_'))}"}
        for namespace, key in (("mine", "seen"), ("other", "hidden")):
            body = {"key": key, "text": "words", "namespace": namespace}
            rest(f"{url}/api/memories", "POST", body, **admin)
        words = pegboard(config, "token", "add", "weak", "--read-only", "--namespace", "mine").split()
        visit = Visit(context.new_page(), url)
        page = visit.open("memory")
        page.get_by_label("Token").fill(next(word for word in words if word.startswith("pgb_")))
        page.get_by_role("button", name="Sign in").click()
        page.get_by_role("link", name="seen").click()
        expect(page.locator(".prose")).to_have_text("words")
        expect(section(page, "Links to")).to_be_visible()
        for name in ("Edit", "Link", "Delete", "Add a memory"):
            expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)
            expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)
        visit.open("memory")
        expect(row(page, "seen")).to_be_visible()
        expect(page.get_by_role("link", name="Add a memory")).to_have_count(0)
        visit.open("memory/hidden")
        expect(page.get_by_text("There is no memory with this key.")).to_be_visible()
        expect(page.get_by_role("link", name="Add a memory with this key")).to_have_count(0)
        visit.open("memory?namespace=other")
        expect(page.get_by_role("alert")).to_contain_text("none of yours")
        page.close()


def test_a_long_key_leaves_the_buttons_of_its_row_in_sight(context: BrowserContext, url: str) -> None:
    """A key is one long word: it is broken, and not what stands behind it cut off."""
    target = "project:domain:type:" + "a_title_of_many_words_without_a_space_" * 3
    write(url, "from_here", "x", target)
    with visiting(context, url) as visit:
        page = visit.open("memory/from_here")
        button = page.get_by_role("button", name="Unlink")
        expect(button).to_be_visible()
        box = page.locator(".table-box", has=button)
        assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
