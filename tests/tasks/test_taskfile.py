"""A tasks.md file as bytes: which lines are tasks, where their boxes are, and that nothing else ever changes."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pegboard.toolsets.tasks.markdown import plain_lines
from pegboard.toolsets.tasks.task import TaskId
from pegboard.toolsets.tasks.taskfile import TaskFile, digest, parse, with_box


def contents(text: str) -> list[str]:
    """The texts of the tasks of a file."""
    return [item.content for item in parse(text.encode(), "c").items]


def ticked(data: bytes, number: int, *, now: bool = True) -> bytes:
    """The bytes with one box changed."""
    file = parse(data, "c")
    return with_box(data, file.codec, file.items[number - 1], ticked=now)


def test_what_a_task_is() -> None:
    """`-` or `*`, a box, and words; nested ones count, other lists and boxes without words do not."""
    text = (
        "# Tasks\n- [ ] one\n* [x] two\n  - [X] nested\n\t* [ ] by a tab\n+ [ ] plus\n1. [ ] numbered\n- [] none\n"
        "- [y] none\n- [ ]none\n-[ ] none\n- [ ]\n- [ ]   \n- plain\n[ ] bare\n> - [ ] quoted\n-   [ ]   wide  \n"
    )
    file = parse(text.encode(), "c")
    assert [(item.content, item.ticked, item.line) for item in file.items] == [
        ("one", False, 2),
        ("two", True, 3),
        ("nested", True, 4),
        ("by a tab", False, 5),
        ("wide", False, 17),
    ]
    assert [item.number for item in file.items] == [1, 2, 3, 4, 5]
    assert [problem.line for problem in file.problems] == [12, 13]


def test_printed_numbers_stay_in_the_text() -> None:
    """A task's number is its place; what is printed is words, and no part of what tells it from others."""
    assert contents("- [ ] 2.1 Add a form\n- [ ] 10. Add it\n") == ["2.1 Add a form", "10. Add it"]
    assert digest("2.1 Add a form") == digest("3.7 Add  a form") == digest("**4.** Add a form") == digest("Add a form")
    assert digest("Add a form") != digest("Add a Form")
    assert digest("1.1") != digest("1.2")


@pytest.mark.parametrize("fence", ["```", "~~~", "`````"])
def test_code_is_no_task(fence: str) -> None:
    """What stands in a code fence shows how a task looks, and is none."""
    assert contents(f"- [ ] a\n{fence}md\n- [ ] b\n{fence[:2]}\n- [ ] c\n{fence}\n- [ ] d\n") == ["a", "d"]
    assert contents(f"- [ ] a\n  {fence}\n  - [ ] b\n  {fence}\n- [ ] c\n") == ["a", "c"]
    assert contents(f"- [ ] a\n- {fence}\n  - [ ] b\n- [ ] c\n") == ["a", "c"]


def test_a_comment_is_no_task() -> None:
    """What is commented out is out."""
    assert contents("- [ ] a\n<!--\n- [ ] b\n-->\n- [ ] c\n<!-- - [ ] d -->\n- [ ] e\n") == ["a", "c", "e"]


def test_a_fence_that_nobody_closes_is_told() -> None:
    """What is behind it is not read, but not silently; inside of a list item it ends with the item."""
    file = parse(b"- [ ] a\n```\n- [ ] b\n", "c")
    assert [item.content for item in file.items] == ["a"]
    assert [problem.line for problem in file.problems] == [2]
    assert contents("- [ ] a\n  ```\n  code\n- [ ] b\n") == ["a", "b"]


def test_dependencies_are_read() -> None:
    """Numbers of the same change and of others; the comment is no part of the text."""
    file = parse(b"- [ ] a <!-- depends: 2, other/3,2 --> \n- [ ] b <!-- keep --> <!--DEPENDS ON:1-->\n", "c")
    assert [item.content for item in file.items] == ["a", "b <!-- keep -->"]
    assert file.items[0].depends == (TaskId("c", 2), TaskId("other", 3))
    assert file.items[1].depends == (TaskId("c", 1),)
    assert not file.problems


def test_dependencies_are_read_by_the_numbers_before_the_texts_too() -> None:
    """People write the number that they see; a number without a dot is a place, as everywhere."""
    text = "- [ ] 1.1 a <!-- depends: 2.1, 1 -->\n- [ ] **1.2** b <!-- depends: 1.1 -->\n- [ ] 2.1. c\n"
    file = parse(text.encode(), "c")
    assert [item.depends for item in file.items] == [(TaskId("c", 3), TaskId("c", 1)), (TaskId("c", 1),), ()]
    assert not file.problems


def test_a_printed_number_that_several_tasks_have_is_not_guessed() -> None:
    """It is told with the places to choose from, and the task waits."""
    file = parse(b"- [ ] 1.1 a\n- [ ] 1.1 b\n- [ ] c <!-- depends: 1.1 -->\n", "c")
    assert (file.items[2].depends, file.items[2].unreadable) == ((), ("1.1",))
    (problem,) = file.problems
    assert (problem.line, "several" in problem.message, "1, 2" in problem.advice) == (3, True, True)


@pytest.mark.parametrize(
    ("comment", "left"),
    [
        ("<!-- depends: 1, foo -->", "foo"),
        ("<!-- depends: 1.2 -->", "1.2"),
        ("<!-- depends: a/b/1 -->", "a/b/1"),
        ("<!-- depends: -1 -->", "-1"),
        ("<!-- depends: /1 -->", "/1"),
        ("<!-- depends: ٣ -->", "٣"),
        ("<!-- depends: 12345678901 -->", "12345678901"),
        ("<!-- depends 1 -->", "<!-- depends 1 -->"),
        ("<!-- dependencies: 1 -->", "<!-- dependencies: 1 -->"),
        ("<!-- depends: -->", "<!-- depends: -->"),
        ("<!-- depends: 1", "<!-- depends: 1"),
    ],
)
def test_a_dependency_that_cannot_be_read_is_not_lost(comment: str, left: str) -> None:
    """It is told with its line, and kept with its task."""
    file = parse(f"- [ ] a {comment}\n".encode(), "c")
    assert file.items[0].content == "a"
    assert file.items[0].unreadable == (left,)
    assert [(problem.line, left in problem.message) for problem in file.problems] == [(1, True)]


ODD = {
    "crlf": "# T\r\n- [ ] one\r\n  - [ ] tw\u00f6\r\n".encode(),
    "no end": b"- [ ] one\n- [ ] two",
    "cr alone": b"# T\r- [ ] one\r- [ ] two\r",
    "mixed": b"- [ ] one\r\n- [ ] two\r\rx\n",
    "utf-8 mark": codecs.BOM_UTF8 + "- [ ] one\n- [ ] 日本\n".encode(),
    "utf-16-le": codecs.BOM_UTF16_LE + "é\n- [ ] one 😀\n- [ ] two\n".encode("utf-16-le"),
    "utf-16-be": codecs.BOM_UTF16_BE + "é\r\n- [ ] one 😀\r\n- [ ] two".encode("utf-16-be"),
    "utf-32-le": codecs.BOM_UTF32_LE + "- [ ] one 😀\n- [ ] two\n".encode("utf-32-le"),
    "latin-1": "- [ ] café\n- [ ] zwölf\n".encode("latin-1"),
    "shift-jis": "- [ ] 表示\n- [ ] ソ能\n".encode("shift-jis"),
    "gbk": "- [ ] 中文\n- [ ] 测试\n".encode("gbk"),
    "broken": b"- [ ] \xff\xfe\x80\n- [ ] \xc3(\n",
    "form feed": b"- [ ] one\x0c\x1c\x85\n- [ ] two\xa0\n",
}


@pytest.mark.parametrize("data", ODD.values(), ids=ODD.keys())
def test_a_tick_changes_one_box_and_nothing_else(data: bytes) -> None:
    """Line ends, marks and bytes of any encoding stay; unticked again, the file is the same to the last byte."""
    file = parse(data, "c")
    assert len(file.items) == 2
    for number in (1, 2):
        after = ticked(data, number)
        assert len(after) == len(data)
        assert sum(a != b for a, b in zip(data, after, strict=True)) == 1
        assert [item.ticked for item in parse(after, "c").items] == [number == 1, number == 2]
        assert ticked(after, number, now=False) == data


def test_what_is_no_text_is_told() -> None:
    """A file of UTF-16 without its mark has no tasks that could be read, and says so."""
    file = parse("- [ ] one\n".encode("utf-16-le"), "c")
    assert file.items == []
    assert "NUL" in file.problems[0].message


# Pieces that files are made of, the tricky ones among them.
PIECES = st.sampled_from(
    [
        *("- [ ] ", "* [x] ", "- [X] ", "  - [ ] ", "\t- [ ] ", "+ [ ] ", "- [ ]", "1. ", "- ", "# ", "> ", "    "),
        *("one", "two words", "日本", "é", "😀", "```", "~~~", "````", "<!-- ", "-->", "<!-- depends: 1, 2 -->"),
        *("<!-- depends: x -->", "[ ]", "[x]", " ", "\t", "\n", "\r\n", "\r", "\n\n", "\x0b", "\x85", "\u2028"),
    ]
)
files = st.builds(
    lambda pieces, codec: codec[0] + "".join(pieces).encode(codec[1]),
    st.lists(PIECES, max_size=60),
    st.sampled_from(
        [
            (b"", "utf-8"),
            (codecs.BOM_UTF8, "utf-8"),
            (codecs.BOM_UTF16_LE, "utf-16-le"),
            (codecs.BOM_UTF16_BE, "utf-16-be"),
        ]
    ),
) | st.binary(max_size=80).map(lambda noise: b"- [ ] a\n" + noise + b"\n- [x] b\n")


def told(file: TaskFile) -> list[tuple[object, ...]]:
    """All that a file says of its tasks, save where the boxes are."""
    return [(item.content, item.ticked, item.line, item.depends, item.unreadable) for item in file.items]


@settings(max_examples=400, deadline=None)
@given(data=files, choice=st.integers(min_value=0), now=st.booleans())
@example(data=b"- [X] a", choice=0, now=True)
def test_parse_tick_parse_changes_exactly_one_task(data: bytes, choice: int, now: bool) -> None:
    """Whatever the file: one task has another box, or none where it was so already; the rest is as before."""
    before = parse(data, "c")
    if not before.items:
        return
    number = choice % len(before.items) + 1
    changed = data if before.items[number - 1].ticked == now else ticked(data, number, now=now)
    after = parse(changed, "c")
    expected = [
        (content, now if at == number else was, *rest) for at, (content, was, *rest) in enumerate(told(before), 1)
    ]
    assert told(after) == expected
    assert after.problems == before.problems
    assert len(changed) == len(data)
    assert sum(a != b for a, b in zip(data, changed, strict=True)) == (0 if changed == data else 1)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["", "", "  ", "    "]),
            st.sampled_from(["- [ ] x", "- a", "text", "```", "```py", "~~~", "", "1. b", "````"]),
        ),
        max_size=14,
    )
)
def test_fences_are_as_markdown_has_them(lines: list[tuple[str, str]]) -> None:
    """A box in what CommonMark takes for fenced code is no task; any other is, save in code by indentation."""
    text = "\n".join(indent + words for indent, words in lines)
    ours = {line.number for line in plain_lines(text).plain}
    fenced: set[int] = set()
    indented: set[int] = set()
    for token in MarkdownIt("commonmark").parse(text):
        if token.type in {"fence", "code_block"} and token.map is not None:
            kind = fenced if token.type == "fence" else indented
            kind.update(range(token.map[0] + 1, token.map[1] + 1))
    boxes = {number for number, (_, words) in enumerate(lines, 1) if words.startswith("- [ ]")}
    assert not ours & fenced & boxes
    assert boxes - fenced - indented <= ours


def test_a_dependency_beside_no_task_is_told() -> None:
    """A text that was wrapped, or a comment in a line of its own: nobody would see that it is not read."""
    text = (
        "- [ ] a long text\n  that goes on <!-- depends: 2 -->\n- [ ] two\n  <!-- depends on: 1 -->\n"
        "<!-- depends: 1 -->\n<!-- this depends on the weather -->\n- [ ] three <!-- depends: 1 -->\n"
        "```\n<!-- depends: 1 -->\n```\n"
    )
    file = parse(text.encode(), "a")
    assert [item.depends for item in file.items] == [(), (), (TaskId("a", 1),)]
    assert sorted(problem.line for problem in file.problems) == [2, 4, 5]
    assert all("stands in no task's line" in problem.message for problem in file.problems)
