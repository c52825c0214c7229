"""JSON with comments and trailing commas: read with exact error places, and edited in place so that only the touched
entry changes."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pegboard.text import quote_start

Path = tuple[str | int, ...]

_MAX_DEPTH = 100
_BOM = "\ufeff"
_WHITESPACE = " \t\r\n"
_LITERALS: dict[str, object] = {"true": True, "false": False, "null": None}

_LINE_BREAK = re.compile(r"\r\n|\n|\r")
_BLANKS = re.compile(r"[ \t]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*[\s\S]*?\*/")
_TRIVIA = re.compile(rf"(?:[{_WHITESPACE}]++|{_COMMENT.pattern})*+")
_COMMENTS_ON_LINE = re.compile(rf"(?:[ \t]*(?:{_COMMENT.pattern}))*")
_WORD = re.compile(r"[-+.\w]+")
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_NUMBER = re.compile(rf"{_INTEGER.pattern}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_STRING_BODY = re.compile(
    r"""(?:[^"\\\x00-\x1f\ud800-\udfff]++
    | \\["\\/bfnrt]
    | \\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}
    | \\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}
    )*+""",
    re.VERBOSE,
)
_UNICODE_ESCAPE = re.compile(r"\\u[0-9a-fA-F]{4}")


class JsoncError(ValueError):
    """A text that is not valid JSONC: the place (line and column from 1) and the reason."""

    def __init__(self, line: int, column: int, reason: str) -> None:
        super().__init__(line, column, reason)
        self.line = line
        self.column = column
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.line}:{self.column}: {self.reason}"


@dataclass(slots=True, eq=False)
class _Node:
    """A value and the offsets where it, its key and the comma behind it stand."""

    start: int
    key_start: int
    value: object = None
    end: int = 0
    comma: int | None = None
    children: "dict[str | int, _Node]" = field(default_factory=dict["str | int", "_Node"])

    @property
    def tail(self) -> int:
        return self.end if self.comma is None else self.comma + 1


class JsoncDocument:
    """A parsed text: its plain value, and where each part of it stands."""

    def __init__(self, text: str, root: _Node) -> None:
        self.value: object = root.value
        self._text = text
        self._root = root

    def place(self, path: Path) -> tuple[int, int]:
        """Line and column of the value at `path`, or of its nearest existing ancestor."""
        return _locate(self._text, _trail(self._root, path)[-1].start)

    def key_place(self, path: Path) -> tuple[int, int]:
        """Line and column of the key at `path` (of a list item: its value), or of its nearest existing ancestor."""
        return _locate(self._text, _trail(self._root, path)[-1].key_start)


def parse(text: str) -> JsoncDocument:
    """Read `text`; raises JsoncError and nothing else."""
    body = text.removeprefix(_BOM)
    return JsoncDocument(body, _Parser(body).document())


def set_value(text: str, path: Path, value: object) -> str:
    """Replace the value at `path`, or add it as the last member of its object, creating missing parent objects.

    Raises KeyError where `path` leads through something that is not an object or to a list item that is not there,
    ValueError or TypeError for a value that JSON cannot hold.
    """
    body = text.removeprefix(_BOM)
    bom = text[: len(text) - len(body)]
    editor = _Editor(body if body.strip(_WHITESPACE) else "{}" + _line_ending(body))
    trail = _trail(editor.root, path)
    result = editor.replace(trail, value) if len(trail) > len(path) else editor.add(trail, path, value)
    parse(result)  # refuses a value nested too deep or with half a surrogate pair before it reaches a file
    return bom + result


def add_members(text: str, path: Path, members: Mapping[str, object]) -> str:
    """Add new members to the object at `path`, in one step however many they are; raises as `set_value` does, and
    KeyError too where one of them is there."""
    body = text.removeprefix(_BOM)
    bom = text[: len(text) - len(body)]
    editor = _Editor(body)
    trail = _trail(editor.root, path)
    if len(trail) <= len(path) or not trail[-1].children.keys().isdisjoint(members):
        raise KeyError(path)
    result = editor.insert_all(trail, members) if members else body
    parse(result)
    return bom + result


def remove(text: str, path: Path) -> str:
    """Take out the entry at `path` with its comma and its own comments; KeyError if it is not there."""
    body = text.removeprefix(_BOM)
    bom = text[: len(text) - len(body)]
    editor = _Editor(body)
    trail = _trail(editor.root, path)
    if not path or len(trail) <= len(path):
        raise KeyError(path)
    return bom + editor.remove(trail[-2], trail[-1])


def _trail(root: _Node, path: Path) -> list[_Node]:
    """The nodes from the root along `path`, as far as they exist."""
    nodes = [root]
    for step in path:
        child = nodes[-1].children.get(step)
        if child is None:
            break
        nodes.append(child)
    return nodes


def _descendants(node: _Node) -> Iterator[_Node]:
    yield node
    for child in node.children.values():
        yield from _descendants(child)


def _line_start(text: str, offset: int) -> int:
    return max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1


def _locate(text: str, offset: int) -> tuple[int, int]:
    start = _line_start(text, offset)
    return len(_LINE_BREAK.findall(text, 0, start)) + 1, offset - start + 1


def _line_ending(text: str) -> str:
    found = _LINE_BREAK.search(text)
    return found.group() if found else "\n"


def _match_end(pattern: re.Pattern[str], text: str, offset: int) -> int:
    found = pattern.match(text, offset)
    return found.end() if found else offset


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _to_int(digits: str) -> int:
    # int() refuses long texts (sys.set_int_max_str_digits), but never those of up to 640 digits.
    if len(digits) <= 640:
        return int(digits)
    half = len(digits) // 2
    return _to_int(digits[:-half]) * 10**half + _to_int(digits[-half:])


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0

    def document(self) -> _Node:
        self.skip_trivia()
        if self.pos == len(self.text):
            raise self.error("the file is empty", 0)
        root = self.node(0, self.pos, "a value")
        self.skip_trivia()
        if self.pos < len(self.text):
            raise self.mismatch("the end of the file after this value")
        return root

    def node(self, depth: int, key_start: int, wanted: str) -> _Node:
        node = _Node(self.pos, key_start)
        match self.peek():
            case "{":
                self.fill(node, depth, "}")
                node.value = {key: child.value for key, child in node.children.items()}
            case "[":
                self.fill(node, depth, "]")
                node.value = [child.value for child in node.children.values()]
            case '"':
                node.value = self.string()
            case _:
                node.value = self.word(wanted)
        node.end = self.pos
        return node

    def fill(self, node: _Node, depth: int, closer: str) -> None:
        if depth == _MAX_DEPTH:
            raise self.error(f"expected at most {_MAX_DEPTH} levels of nesting, found more", self.pos)
        self.pos += 1
        self.skip_trivia()
        while not self.take(closer):
            key_start = self.pos
            key = self.key(node) if closer == "}" else len(node.children)
            wanted = "a value" if closer == "}" else "a value or ']'"
            child = node.children[key] = self.node(depth + 1, key_start, wanted)
            self.skip_trivia()
            if self.peek() == ",":
                child.comma = self.pos
                self.pos += 1
                self.skip_trivia()
            elif self.peek() != closer:
                raise self.mismatch(f"',' or '{closer}' after this value")

    def key(self, parent: _Node) -> str:
        start = self.pos
        if self.peek() != '"':
            raise self.mismatch("a key in double quotes or '}'")
        key = self.string()
        if key in parent.children:
            line, column = _locate(self.text, parent.children[key].key_start)
            raise self.error(f"the key {_quote(key)} stands twice in this object, first at {line}:{column}", start)
        self.skip_trivia()
        if not self.take(":"):
            raise self.mismatch("':' after this key")
        self.skip_trivia()
        return key

    def string(self) -> str:
        start = self.pos
        self.pos = _match_end(_STRING_BODY, self.text, start + 1)
        if not self.take('"'):
            raise self.bad_string(start)
        return str(json.loads(self.text[start : self.pos]))

    def bad_string(self, start: int) -> JsoncError:
        char, following = self.peek(), self.text[self.pos + 1 : self.pos + 2]
        if (following if char == "\\" else char) in ("", "\r", "\n"):
            return self.error("this string is never closed", start)
        if char < " ":
            return self.error(f"expected an escape, found the control character U+{ord(char):04X}", self.pos)
        if char != "\\" or _UNICODE_ESCAPE.match(self.text, self.pos):
            return self.error("expected a surrogate pair, found half of one", self.pos)
        if following == "u":
            return self.error("expected four hexadecimal digits after '\\u'", self.pos)
        return self.error(f"expected an escape that JSON knows, found '\\{following}'", self.pos)

    def word(self, wanted: str) -> object:
        end = _match_end(_WORD, self.text, self.pos)
        word = self.text[self.pos : end]
        if word in _LITERALS:
            value = _LITERALS[word]
        elif _NUMBER.fullmatch(word):
            value = self.number(word)
        else:
            raise self.mismatch("a JSON number" if re.match("[-+.0-9]", word) else wanted)
        self.pos = end
        return value

    def number(self, word: str) -> int | float:
        if _INTEGER.fullmatch(word):
            return -_to_int(word[1:]) if word[0] == "-" else _to_int(word)
        value = float(word)
        if math.isinf(value):
            raise self.error("expected a number within the range of a float, found a larger one", self.pos)
        return value

    def skip_trivia(self) -> None:
        self.pos = _match_end(_TRIVIA, self.text, self.pos)
        if self.text.startswith("/*", self.pos):
            raise self.error("this comment is never closed", self.pos)

    def peek(self) -> str:
        return self.text[self.pos : self.pos + 1]

    def take(self, char: str) -> bool:
        taken = self.peek() == char
        self.pos += taken
        return taken

    def mismatch(self, wanted: str) -> JsoncError:
        word = self.text[self.pos : _match_end(_WORD, self.text, self.pos)] or self.peek()
        shown = quote_start(word, 20)
        found = repr(shown).replace("\\\\", "\\") if shown else "the end of the file"
        return self.error(f"expected {wanted}, found {found}", self.pos)

    def error(self, reason: str, offset: int) -> JsoncError:
        return JsoncError(*_locate(self.text, offset), reason)


class _Editor:
    def __init__(self, text: str) -> None:
        self.text = text
        self.root = _Parser(text).document()
        self.line_ending = _line_ending(text)

    def replace(self, trail: list[_Node], value: object) -> str:
        node = trail[-1]
        parent = trail[-2] if len(trail) > 1 else node
        rendered = self.render(value, self.indent_at(node.key_start), self.indent_unit(parent))
        return self.splice((node.start, node.end, rendered))

    def add(self, trail: list[_Node], path: Path, value: object) -> str:
        container = trail[-1]
        key, *inner_keys = path[len(trail) - 1 :]
        if not isinstance(container.value, dict) or not all(isinstance(step, str) for step in (key, *inner_keys)):
            raise KeyError(path)
        for inner_key in reversed(inner_keys):
            value = {inner_key: value}
        return self.insert_all(trail, {str(key): value})

    def insert_all(self, trail: list[_Node], members: Mapping[str, object]) -> str:
        """The text with these members at the end of the last object of the trail."""
        container = trail[-1]
        if not isinstance(container.value, dict):
            raise KeyError(next(iter(members)))
        unit = self.indent_unit(container)
        indent = [self.indent_at(container.start) + unit, *self.child_indents(container)][-1]
        rendered = [f"{_quote(key)}: {self.render(value, indent, unit)}" for key, value in members.items()]
        # An empty object has no layout of its own yet, so it follows the container it stands in.
        models = trail[-1:] if container.children else trail[-2:-1]
        on_same_line = any(map(self.is_one_line, models)) and not any(map(_LINE_BREAK.search, rendered))
        new_line = "" if on_same_line else self.line_ending + indent
        return self.insert(container, f",{new_line or ' '}".join(rendered), new_line)

    def insert(self, container: _Node, member: str, new_line: str) -> str:
        last = next(reversed(container.children.values()), None)
        at = self.behind_comments(last.tail if last else container.start + 1)
        lead = new_line or (" " if at > container.start + 1 else "")
        line_end = _match_end(_BLANKS, self.text, at)
        at = until = line_end if _LINE_BREAK.match(self.text, line_end) else at
        closing = "," if last and last.comma is not None else ""
        if new_line and self.is_one_line(container):
            until = container.end - 1
            closing += self.line_ending + self.indent_at(container.start)
        edits = [(at, until, lead + member + closing)]
        if last and last.comma is None:
            edits.insert(0, (last.end, last.end, ","))
        return self.splice(*edits)

    def remove(self, parent: _Node, node: _Node) -> str:
        siblings = list(parent.children.values())
        index = siblings.index(node)
        left = siblings[index - 1].tail if index else parent.start + 1
        start, stop = self.span_to_remove(node, left)
        cuts = [(start, stop, "")]
        if node.comma is not None and node.comma >= stop:
            cuts.append((node.comma, node.comma + 1, ""))
        if index and node is siblings[-1] and node.comma is None:
            cuts.insert(0, (left - 1, left, ""))
        return self.splice(*cuts)

    def span_to_remove(self, node: _Node, left: int) -> tuple[int, int]:
        kept_until = self.behind_comments(left)
        starts_line = _LINE_BREAK.search(self.text, kept_until, node.key_start)
        start, stop = self.start_with_comments(node, kept_until), self.end_with_comments(node)
        next_token = _match_end(_BLANKS, self.text, stop)
        line_break = _LINE_BREAK.match(self.text, next_token)
        if starts_line and line_break:
            return _line_start(self.text, start), line_break.end()
        if not starts_line and self.ends_line_or_container(stop):
            return kept_until, stop
        return start, next_token

    def start_with_comments(self, node: _Node, kept_until: int) -> int:
        """Where the comments begin that stand directly above `node`, without a blank line between."""
        start = node.key_start
        for comment in reversed(list(_COMMENT.finditer(self.text, kept_until, node.key_start))):
            if len(_LINE_BREAK.findall(self.text, comment.end(), start)) > 1:
                break
            start = comment.start()
        return start

    def end_with_comments(self, node: _Node) -> int:
        """Where `node`, its comma and the comments behind them end, as far as they share its line."""
        end = self.behind_comments(node.end)
        if _match_end(_BLANKS, self.text, end) != node.comma:
            return end
        end = self.behind_comments(node.tail)
        # A comment between two entries on one line may belong to either, so it stays.
        return end if self.ends_line_or_container(end) else node.tail

    def ends_line_or_container(self, offset: int) -> bool:
        return self.text[_match_end(_BLANKS, self.text, offset)] in "\r\n]}"

    def behind_comments(self, offset: int) -> int:
        return _match_end(_COMMENTS_ON_LINE, self.text, offset)

    def is_one_line(self, node: _Node) -> bool:
        return not _LINE_BREAK.search(self.text, node.start, node.end)

    def indent_at(self, offset: int) -> str:
        start = _line_start(self.text, offset)
        return self.text[start : _match_end(_BLANKS, self.text, start)]

    def child_indents(self, container: _Node) -> list[str]:
        """The indentation of each child that is the first thing on its line."""
        starts = [child.key_start for child in container.children.values()]
        return [self.text[_line_start(self.text, at) : at] for at in starts if self.is_first_on_line(at)]

    def is_first_on_line(self, offset: int) -> bool:
        return _match_end(_BLANKS, self.text, _line_start(self.text, offset)) == offset

    def indent_unit(self, container: _Node) -> str:
        """One step of indentation as `container` shows it, or else the first container that does."""
        for candidate in (container, *_descendants(self.root)):
            outer = self.indent_at(candidate.start)
            for inner in self.child_indents(candidate):
                if inner != outer and inner.startswith(outer):
                    return inner.removeprefix(outer)
        return "  "

    def render(self, value: object, indent: str, unit: str) -> str:
        try:
            rendered = json.dumps(value, indent=unit, ensure_ascii=False, allow_nan=False)
        except RecursionError:
            raise ValueError(f"the value is nested deeper than {_MAX_DEPTH} levels") from None
        return rendered.replace("\n", self.line_ending + indent)

    def splice(self, *edits: tuple[int, int, str]) -> str:
        """The text with each (start, stop, replacement) applied; they must come in order."""
        text = self.text
        for start, stop, replacement in reversed(edits):
            text = text[:start] + replacement + text[stop:]
        return text
